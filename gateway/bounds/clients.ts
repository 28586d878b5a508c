/**
 * Who holds something at the moment: one entry for each client address with an open connection or a request, gone with
 * the last of them. So the table is bounded by what is open, and nobody is ever evicted from it.
 */
import { BOUND_NAMES } from './bound-names.ts';

export class Client {
  /** Canonical: IPv4, an IPv6 /64, or the one that all share whose proxy chain cannot be read. */
  readonly address: string;
  /** How many of each thing, in the order of BOUND_NAMES. */
  readonly held: number[] = BOUND_NAMES.map(() => 0);
  /** Connections and requests that keep this entry. */
  users = 0;

  constructor(address: string) {
    this.address = address;
  }
}

export class Clients {
  readonly #byAddress = new Map<string, Client>();

  get size(): number {
    return this.#byAddress.size;
  }

  /** Each call is answered by one of `leave`. */
  enter(address: string): Client {
    let client = this.#byAddress.get(address);
    if (client === undefined) {
      client = new Client(address);
      this.#byAddress.set(address, client);
    }
    client.users++;
    return client;
  }

  /** The same for whoever is known already, but may have left since. */
  hold(client: Client): Client {
    if (client.users === 0) return this.enter(client.address);
    client.users++;
    return client;
  }

  leave(client: Client): void {
    if (--client.users === 0) this.#byAddress.delete(client.address);
  }
}
