/** A listener other than the public one cannot listen; the cause says why. */
export class ListenError extends Error {
  /** The variables that say where. */
  readonly portVariable: string;
  readonly hostVariable: string;

  constructor(portVariable: string, hostVariable: string, cause: unknown) {
    super(`the listener of ${portVariable} cannot listen`, { cause });
    this.name = 'ListenError';
    this.portVariable = portVariable;
    this.hostVariable = hostVariable;
  }
}
