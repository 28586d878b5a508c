/** A listener other than the public one cannot listen; the cause says why. */
export class ListenError extends Error {
  /** Of the variables that say where. */
  readonly prefix: string;

  constructor(prefix: string, cause: unknown) {
    super(`the listener of ${prefix}_PORT cannot listen`, { cause });
    this.name = 'ListenError';
    this.prefix = prefix;
  }
}
