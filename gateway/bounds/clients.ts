/**
 * Who holds something at the moment: one entry for each client address with an open connection or a request, gone with
 * the last of them. So the table is bounded by what is open, and nobody is ever evicted from it. Clients of IPv6 share an
 * entry of their network as well: whoever has a /48 has 65,536 clients.
 */
import { networkOf } from '#shared/client-address.ts';
import { BOUND_NAMES } from './bound-names.ts';

class Holder {
  /** Canonical. */
  readonly address: string;
  /** How many of each thing, in the order of BOUND_NAMES. */
  readonly held: number[] = BOUND_NAMES.map(() => 0);
  /** References to this entry; it is removed when there are none. */
  users = 0;

  constructor(address: string) {
    this.address = address;
  }
}

/** Many clients together. */
export class Network extends Holder {}

/** An IPv4 address, an IPv6 /64, or the one that all share whose proxy chain cannot be read. */
export class Client extends Holder {
  /** null: it has no share with others. */
  readonly network: Network | null;

  constructor(address: string, network: Network | null = null) {
    super(address);
    this.network = network;
  }
}

export class Clients {
  readonly #networkPrefix: number;
  readonly #byAddress = new Map<string, Client>();
  readonly #networks = new Map<string, Network>();

  /** @param networkPrefix how many bits of an IPv6 address make one network */
  constructor(networkPrefix: number) {
    this.#networkPrefix = networkPrefix;
  }

  get size(): number {
    return this.#byAddress.size;
  }

  get networks(): number {
    return this.#networks.size;
  }

  /** Each call is answered by one of `leave`. */
  enter(address: string): Client {
    let client = this.#byAddress.get(address);
    if (client === undefined) {
      client = new Client(address, this.#enterNetwork(address));
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
    if (--client.users > 0) return;
    this.#byAddress.delete(client.address);
    const { network } = client;
    if (network !== null && --network.users === 0) this.#networks.delete(network.address);
  }

  #enterNetwork(client: string): Network | null {
    const address = networkOf(client, this.#networkPrefix);
    // A network of one client has that client's share.
    if (address === null || address === client) return null;
    let network = this.#networks.get(address);
    if (network === undefined) {
      network = new Network(address);
      this.#networks.set(address, network);
    }
    network.users++;
    return network;
  }
}
