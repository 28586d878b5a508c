/**
 * Client addresses that hold something: one entry for each address with an open connection or request, removed with the
 * last of them. So the table is bounded by the open connections, and never drops an entry. IPv6 clients also share an
 * entry of their network, because the owner of a /48 has 65,536 client addresses.
 */
import { networkOf } from '#shared/client-address.ts';
import { BOUND_NAMES } from './bound-names.ts';

/** A customer usually gets a /48 or less, and can use any address in it. */
const NETWORK_PREFIX = 48;

class Holder {
  readonly address: string;
  /** How much of each bound is held, in the order of BOUND_NAMES. */
  readonly held: number[] = BOUND_NAMES.map(() => 0);
  users = 0;

  constructor(address: string) {
    this.address = address;
  }
}

export class Network extends Holder {}

/** An IPv4 address, an IPv6 /64, or `untrusted` for all clients with an unreadable proxy chain. */
export class Client extends Holder {
  readonly network: Network | null;

  constructor(address: string, network: Network | null = null) {
    super(address);
    this.network = network;
  }
}

export class Clients {
  readonly #byAddress = new Map<string, Client>();
  readonly #networks = new Map<string, Network>();

  get size(): number {
    return this.#byAddress.size;
  }

  get networks(): number {
    return this.#networks.size;
  }

  /** Call `leave` once for each call of `enter`. */
  enter(address: string): Client {
    let client = this.#byAddress.get(address);
    if (client === undefined) {
      client = new Client(address, this.#enterNetwork(address));
      this.#byAddress.set(address, client);
    }
    client.users++;
    return client;
  }

  /** Like `enter`, for a known client, even if its entry was removed in the meantime. */
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
    const address = networkOf(client, NETWORK_PREFIX);
    // If the network is not larger than one client, the client's own share is enough.
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
