/**
 * Client addresses that hold something: one entry for each address with an open connection or request, removed with the
 * last of them. So the table is bounded by the open connections, and never drops an entry. IPv6 clients also share an
 * entry of their network, because the owner of a /48 has 65,536 client addresses.
 */
import { networkOf } from '#shared/client-address.ts';
import { BOUND_NAMES } from './bound-names.ts';

/** A customer usually gets a /48 or less, and can use any address in it. */
const NETWORK_PREFIX = 48;

/** An IPv4 address, an IPv6 /64, the network of such, or `untrusted` for all clients with an unreadable proxy chain. */
export class Client {
  readonly address: string;
  /** null for IPv4, and for a network. */
  readonly network: Client | null;
  /** How much of each bound is held, in the order of BOUND_NAMES. */
  readonly held: number[] = BOUND_NAMES.map(() => 0);
  users = 0;

  constructor(address: string, network: Client | null = null) {
    this.address = address;
    this.network = network;
  }
}

export class Clients {
  readonly #byAddress = new Map<string, Client>();
  readonly #networks = new Map<string, Client>();

  get size(): number {
    return this.#byAddress.size;
  }

  get networks(): number {
    return this.#networks.size;
  }

  /** Call `leave` once for each call of `enter`. */
  enter(address: string): Client {
    return enter(this.#byAddress, address, () => {
      const network = networkOf(address, NETWORK_PREFIX);
      // If the network is not larger than one client, the client's own share is enough.
      return network === null || network === address ? null : enter(this.#networks, network);
    });
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
}

function enter(
  all: Map<string, Client>,
  address: string,
  networkOfIt: () => Client | null = () => null,
): Client {
  let client = all.get(address);
  if (client === undefined) {
    client = new Client(address, networkOfIt());
    all.set(address, client);
  }
  client.users++;
  return client;
}
