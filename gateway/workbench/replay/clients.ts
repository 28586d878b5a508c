/**
 * Counts the requests of each client exactly. The clients of a run are stored once, in a Map, and each count is an
 * array of numbers. A Map for each policy would need more than 1 GB for a million clients when two files are compared.
 */

export interface Frequent {
  readonly identity: string;
  readonly count: number;
}

/** Maximum number of clients. A client takes about 90 bytes, and 4 to 8 bytes in each count. */
export const CLIENTS_MAX = 4_194_304;

export class Clients {
  readonly #max: number;
  readonly #numbers = new Map<string, number>();
  /** Whether there were more than CLIENTS_MAX clients. The others are not counted. */
  isFull = false;

  constructor(max = CLIENTS_MAX) {
    this.#max = max;
  }

  /** @returns a number from 0; null if there are too many clients */
  numberOf(digest: string): number | null {
    const known = this.#numbers.get(digest);
    if (known !== undefined) return known;
    const number = this.#numbers.size;
    if (number === this.#max) {
      this.isFull = true;
      return null;
    }
    // This copies the text, because a slice of a line would keep the whole portion of the log in memory.
    this.#numbers.set(Buffer.from(digest, 'latin1').toString('latin1'), number);
    return number;
  }

  /** Digests of the clients, in the order of their numbers. */
  digests(): Iterable<string> {
    return this.#numbers.keys();
  }
}

export class ClientCounts {
  readonly #clients: Clients;
  #counts = new Uint32Array(64);
  /** Number of clients with a count. */
  size = 0;

  constructor(clients: Clients) {
    this.#clients = clients;
  }

  add(digest: string): void {
    const client = this.#clients.numberOf(digest);
    if (client === null) return;
    if (client >= this.#counts.length) {
      const larger = new Uint32Array(2 ** Math.ceil(Math.log2(client + 1)));
      larger.set(this.#counts);
      this.#counts = larger;
    }
    const count = this.#counts[client] ?? 0;
    if (count === 0) this.size++;
    this.#counts[client] = count + 1;
  }

  /** Returns the clients with the highest counts, in descending order. */
  most(max: number): readonly Frequent[] {
    const found: Frequent[] = [];
    let client = 0;
    for (const identity of this.#clients.digests()) {
      const count = this.#counts[client++] ?? 0;
      if (count > 0) found.push({ identity, count });
    }
    return found.sort((a, b) => b.count - a.count || (a.identity < b.identity ? -1 : 1)).slice(0, max);
  }
}
