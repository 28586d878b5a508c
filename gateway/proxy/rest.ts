/**
 * Lets connections rest after a reply until the event loop has looked for input once more. Bytes that an upstream sends
 * behind its reply are then found before the next request is sent, instead of being taken for its reply.
 */

interface Resting {
  onRested(): void;
}

export class Rest {
  /** Connections whose reply ended after the event loop has last looked for input. */
  #ended: Resting[] = [];
  /** Connections that have rested when the event loop has looked for input again. */
  #resting: Resting[] = [];

  begin(connection: Resting): void {
    if (this.#ended.push(connection) === 1 && this.#resting.length === 0) setImmediate(this.#turn);
  }

  /** Runs after each look for input while connections rest. */
  readonly #turn = (): void => {
    const rested = this.#resting;
    this.#resting = this.#ended;
    this.#ended = [];
    if (this.#resting.length > 0) setImmediate(this.#turn);
    for (const connection of rested) connection.onRested();
  };
}
