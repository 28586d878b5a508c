/** A refusal of the admin API. The message tells how to correct the request. */
export class AdminError extends Error {
  readonly statusCode: 400 | 404 | 503;

  constructor(statusCode: 400 | 404 | 503, message: string, options?: ErrorOptions) {
    super(message, options);
    this.statusCode = statusCode;
  }
}
