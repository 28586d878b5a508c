/** How commands end. Stated in docs/cli.md: scripts rely on the codes. */
export const EXIT = {
  ok: 0,
  /** The answer is no: mistakes found, tests failed, denied, not the same. */
  no: 1,
  /** The command was called wrongly. */
  usage: 2,
  /** A program, its store or a file could not be reached. */
  unreachable: 3,
  /** A mistake of ours. */
  fault: 70,
} as const;

export type ExitCode = (typeof EXIT)[keyof typeof EXIT];

/** Ends a command with a sentence and an exit code. */
export class CommandError extends Error {
  readonly exitCode: ExitCode;

  constructor(message: string, exitCode: ExitCode) {
    super(message);
    this.name = 'CommandError';
    this.exitCode = exitCode;
  }
}
