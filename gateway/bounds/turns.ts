/** Things that wait for their turn. Their owners are served one after the other, no matter how much each has waiting. */
export class Turns<Owner, Waiting> {
  /** The first owner is served next. */
  readonly #queues = new Map<Owner, Set<Waiting>>();

  get isEmpty(): boolean {
    return this.#queues.size === 0;
  }

  add(owner: Owner, waiting: Waiting): void {
    const queue = this.#queues.get(owner);
    if (queue === undefined) this.#queues.set(owner, new Set([waiting]));
    else queue.add(waiting);
  }

  /** @returns false if it did not wait */
  delete(owner: Owner, waiting: Waiting): boolean {
    const queue = this.#queues.get(owner);
    if (queue?.delete(waiting) !== true) return false;
    if (queue.size === 0) this.#queues.delete(owner);
    return true;
  }

  /** Removes the first thing of the first owner, and moves that owner to the end. */
  next(): Waiting | undefined {
    for (const [owner, queue] of this.#queues) {
      this.#queues.delete(owner);
      for (const waiting of queue) {
        queue.delete(waiting);
        if (queue.size > 0) this.#queues.set(owner, queue);
        return waiting;
      }
    }
    return undefined;
  }
}
