/** Types that all commands share. */
import type { Argv } from 'yargs';
import type { GlobalOptions, RunCommand } from '#shared/cli/program.ts';
import type { Terminal } from '#shared/cli/terminal.ts';

/** Replaces a lone - among the arguments, because yargs drops it. */
export const STANDARD_INPUT = '(standard input)';

export interface CommandContext {
  readonly terminal: Terminal;
  /** The environment, for defaults of options. */
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly now: () => number;
  /** Starts the gateway in this process, with these settings added to the environment. Resolves once it is ready. */
  readonly start: (settings: Readonly<Record<string, string>>) => Promise<void>;
  readonly run: RunCommand;
}

/** Adds one command. A file of `commands/` exports one such function. */
export type AddCommand = (program: Argv<GlobalOptions>, context: CommandContext) => Argv<GlobalOptions>;
