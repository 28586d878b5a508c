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
  readonly numbers = new Map<string, number>();
  readonly #max: number;
  /** Whether there were more than CLIENTS_MAX clients. The others are not counted. */
  isFull = false;

  constructor(max = CLIENTS_MAX) {
    this.#max = max;
  }

  /** @returns a number from 0; null if there are too many clients */
  numberOf(digest: string): number | null {
    const known = this.numbers.get(digest);
    if (known !== undefined) return known;
    const number = this.numbers.size;
    this.isFull ||= number === this.#max;
    if (this.isFull) return null;
    this.numbers.set(digest, number);
    return number;
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
    for (const [identity, client] of this.#clients.numbers) {
      const count = this.#counts[client] ?? 0;
      if (count > 0) found.push({ identity, count });
    }
    return found.sort((a, b) => b.count - a.count || (a.identity < b.identity ? -1 : 1)).slice(0, max);
  }
}
