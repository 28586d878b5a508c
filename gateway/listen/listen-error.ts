/** An additional listener cannot listen. The cause gives the reason. */
export class ListenError extends Error {
  readonly portVariable: string;
  readonly hostVariable: string;

  constructor(portVariable: string, hostVariable: string, cause: unknown) {
    super(`the listener of ${portVariable} cannot listen`, { cause });
    this.name = 'ListenError';
    this.portVariable = portVariable;
    this.hostVariable = hostVariable;
  }
}
