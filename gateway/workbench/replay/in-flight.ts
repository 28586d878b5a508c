/** Requests of a log that are in flight, on the clock of the log: a heap by when they end. */
import type { Millis } from '#shared/clock.ts';

/** More than a gateway has at once; of more than that the one that ends first is over. */
const HELD_MAX = 65_536;

interface Held<T> {
  readonly endsAt: Millis;
  readonly what: T;
}

export class InFlight<T> {
  readonly #heap: Held<T>[] = [];
  readonly #onEnd: (what: T) => void;

  constructor(onEnd: (what: T) => void) {
    this.#onEnd = onEnd;
  }

  add(what: T, endsAt: Millis): void {
    if (this.#heap.length >= HELD_MAX) this.#endFirst();
    const heap = this.#heap;
    let at = heap.length;
    const held = { endsAt, what };
    heap.push(held);
    for (;;) {
      const above = (at - 1) >> 1;
      const parent = heap[above];
      if (at === 0 || parent === undefined || parent.endsAt <= endsAt) break;
      heap[at] = parent;
      at = above;
    }
    heap[at] = held;
  }

  /** Ends all requests whose time has come. */
  endBy(now: Millis): void {
    for (let first = this.#heap[0]; first !== undefined && first.endsAt <= now; first = this.#heap[0])
      this.#endFirst();
  }

  #endFirst(): void {
    const heap = this.#heap;
    const [first] = heap;
    const last = heap.pop();
    if (first === undefined || last === undefined) return;
    if (heap.length > 0) this.#sink(last);
    this.#onEnd(first.what);
  }

  #sink(held: Held<T>): void {
    const heap = this.#heap;
    for (let at = 0; ; ) {
      const left = heap[2 * at + 1];
      const right = heap[2 * at + 2];
      const isRight = right !== undefined && left !== undefined && right.endsAt < left.endsAt;
      const child = isRight ? right : left;
      if (child === undefined || child.endsAt >= held.endsAt) {
        heap[at] = held;
        return;
      }
      heap[at] = child;
      at = 2 * at + (isRight ? 2 : 1);
    }
  }
}
