/** What cannot be asked; the message says what to write. */
export class BadRequestError extends Error {}

/** What is asked for is not there. */
export class NotFoundError extends Error {}

/** As many ask as may at once. */
export class TooBusyError extends Error {}
