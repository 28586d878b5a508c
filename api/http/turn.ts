/** Yields to the event loop between the parts of heavy work. */

/** The work between two yields, in bytes of JSON: about 10 ms. */
const TURN_BYTES = 1_048_576;

/** Heavy work of one request. */
export class Work {
  #bytes = 0;

  /** Resolves in an event-loop tick in which no other work begins. */
  static async begin(): Promise<Work> {
    await turn();
    return new Work();
  }

  /** Resolves after a yield if enough work was done since the last one, otherwise at once. */
  async done(bytes: number): Promise<void> {
    this.#bytes += bytes;
    if (this.#bytes < TURN_BYTES) return;
    this.#bytes = 0;
    await turn();
  }
}

const waiting: (() => void)[] = [];

/**
 * Resolves in a later event-loop tick. Of all callers that wait, one continues in each tick, in the order of their calls.
 * So several heavy requests delay others no longer than one does.
 */
function turn(): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  if (waiting.push(resolve) === 1) setImmediate(next);
  return promise;
}

function next(): void {
  waiting.shift()?.();
  if (waiting.length > 0) setImmediate(next);
}
