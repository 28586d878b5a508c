/** What all commands share: how they end, and how they are told apart. */
import type { ReadStream } from 'node:tty';
import type { Argv } from 'yargs';
import type { Terminal } from './terminal.ts';

/** Stated in docs/cli.md: scripts rely on them. */
export const EXIT = {
  ok: 0,
  /** The answer is no: mistakes found, tests failed, denied. */
  no: 1,
  /** The command was called wrongly. */
  usage: 2,
  /** The gateway, its store or a file could not be reached. */
  unreachable: 3,
  /** A mistake of ours. */
  fault: 70,
} as const;

export type ExitCode = (typeof EXIT)[keyof typeof EXIT];

/** What a lone - among the arguments becomes: yargs would drop it. */
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
  /** Of the wall clock. */
  readonly now: () => number;
  /** Runs a command's body; what it throws ends with its exit code and one sentence. */
  readonly run: (body: () => Promise<ExitCode> | ExitCode) => Promise<void>;
}

/** Adds one command. A file of `commands/` exports one such function. */
export type AddCommand = (program: Argv<GlobalOptions>, context: CommandContext) => Argv<GlobalOptions>;

/** Ends a command with a sentence and an exit code. */
export class CommandError extends Error {
  readonly exitCode: ExitCode;

  constructor(message: string, exitCode: ExitCode) {
    super(message);
    this.name = 'CommandError';
    this.exitCode = exitCode;
  }
}
