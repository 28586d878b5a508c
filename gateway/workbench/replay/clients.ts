/** Counts the requests of each client, exactly. */

export interface Frequent {
  /** A digest. */
  readonly identity: string;
  readonly count: number;
}

/** How many clients all counts of a run may hold together, at about 80 bytes each. */
export const CLIENTS_MAX = 8_000_000;

export class ClientCounts {
  readonly #room: { left: number };
  readonly #counts = new Map<string, number>();
  /** There was no room for some clients: they are missing here. */
  isFull = false;

  /** @param room for how many more clients; shared by all counts of a run */
  constructor(room: { left: number }) {
    this.#room = room;
  }

  get size(): number {
    return this.#counts.size;
  }

  /** Counts a request of this client. */
  add(identity: string): void {
    const count = this.#counts.get(identity);
    if (count !== undefined) this.#counts.set(identity, count + 1);
    else if (this.#room.left > 0) {
      this.#room.left--;
      // A copy: a slice of a log's line would keep the whole portion of the log in memory.
      this.#counts.set(Buffer.from(identity, 'latin1').toString('latin1'), 1);
    } else this.isFull = true;
  }

  /** The clients with the highest counts, the highest first. */
  most(max: number): readonly Frequent[] {
    return [...this.#counts]
      .map(([identity, count]) => ({ identity, count }))
      .sort((a, b) => b.count - a.count || (a.identity < b.identity ? -1 : 1))
      .slice(0, max);
  }
}
