/** Maximum number of clients in one count; about 100 bytes each. */
export const CLIENTS_MAX = 524_288;

/** How often each client occurred, exactly as long as there are not too many clients. */
export class ClientCounts {
  readonly #counts = new Map<string, number>();
  readonly #max: number;
  /** Whether there were more than CLIENTS_MAX clients. The later ones are not counted. */
  isFull = false;

  constructor(max = CLIENTS_MAX) {
    this.#max = max;
  }

  add(digest: string): void {
    const count = this.#counts.get(digest) ?? 0;
    if (count === 0 && this.#counts.size === this.#max) this.isFull = true;
    else this.#counts.set(digest, count + 1);
  }

  /** Number of clients. */
  get size(): number {
    return this.#counts.size;
  }

  /** Returns the clients with the highest counts, in descending order. */
  most(max: number): readonly { readonly identity: string; readonly count: number }[] {
    const all = [...this.#counts].map(([identity, count]) => ({ identity, count }));
    return all.sort((a, b) => b.count - a.count || (a.identity < b.identity ? -1 : 1)).slice(0, max);
  }
}
