/** Lets the event loop turn between the parts of heavy work. */

/** What is done in one turn, in bytes of JSON: some 10 ms. */
const TURN_BYTES = 1_048_576;

/** Heavy work of one request. */
export class Work {
  #bytes = 0;

  /** @returns in a turn in which no other work begins */
  static async begin(): Promise<Work> {
    await turn();
    return new Work();
  }

  /** @returns once others had their turn, if this and what was done before it add up to a turn's worth */
  async done(bytes: number): Promise<void> {
    this.#bytes += bytes;
    if (this.#bytes < TURN_BYTES) return;
    this.#bytes = 0;
    await turn();
  }
}

const waiting: (() => void)[] = [];

/**
 * Resolves in a later turn of the event loop. Of all that wait one goes on in each turn, in the order in which they came:
 * several heavy requests at once stall the others no longer than one does.
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
