/** Exit codes of commands, as docs/cli.md states them. */
export const EXIT = {
  ok: 0,
  /** A negative result: mistakes found, tests failed, denied, not equal. */
  no: 1,
  /** Wrong arguments. */
  usage: 2,
  /** A program, its store or a file cannot be reached. */
  unreachable: 3,
  /** A bug in Floodgate. */
  fault: 70,
} as const;

export type ExitCode = (typeof EXIT)[keyof typeof EXIT];

export class CommandError extends Error {
  readonly exitCode: ExitCode;

  constructor(message: string, exitCode: ExitCode) {
    super(message);
    this.name = 'CommandError';
    this.exitCode = exitCode;
  }
}
