/** Types that all commands share. */
import type { ReadStream } from 'node:tty';
import type { Argv } from 'yargs';
import type { ExitCode } from '#shared/cli/exit.ts';
import type { Terminal } from '#shared/cli/terminal.ts';

/** Replaces a lone - among the arguments, because yargs drops it. */
export const STANDARD_INPUT = '(standard input)';

/** Options of every command. */
export interface GlobalOptions {
  readonly json: boolean;
}

export interface CommandContext {
  readonly terminal: Terminal;
  /** The environment, for defaults of options. */
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly stdin: ReadStream;
  readonly now: () => number;
  /** Starts the gateway in this process, with these settings added to the environment. Resolves once it is ready. */
  readonly start: (settings: Readonly<Record<string, string>>) => Promise<void>;
  /** Runs a command's body. An error that it throws becomes an exit code and one sentence. */
  readonly run: (body: () => Promise<ExitCode> | ExitCode) => Promise<void>;
}

/** Adds one command. A file of `commands/` exports one such function. */
export type AddCommand = (program: Argv<GlobalOptions>, context: CommandContext) => Argv<GlobalOptions>;

const UNIT_SECONDS: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3600, d: 86_400 };

/** @param text such as 30s, 15m, 1h or 7d @returns null for any other text */
export function secondsOf(text: string): number | null {
  const [, digits, unit = ''] = /^([1-9]\d{0,8})([smhd])$/.exec(text) ?? [];
  return digits === undefined ? null : Number(digits) * (UNIT_SECONDS[unit] ?? 0);
}
