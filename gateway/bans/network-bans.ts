/** Finds the banned network of an address. A ban of a network has the network as its name, where others have a digest. */
import { parseNetwork } from '#shared/client-address.ts';
import { NetworkMap } from '#shared/network-map.ts';

export class NetworkBans {
  readonly #networks = new NetworkMap<string>();

  get size(): number {
    return this.#networks.size;
  }

  /** @param name of any ban */
  add(name: string): void {
    if (isNetwork(name)) this.#networks.add(parseNetwork(name), name);
  }

  delete(name: string): void {
    if (isNetwork(name)) this.#networks.delete(parseNetwork(name));
  }

  clear(): void {
    this.#networks.clear();
  }

  /** Returns the smallest banned network that contains the address. @param address 4 or 16 bytes */
  find(address: readonly number[]): string | undefined {
    return this.#networks.find(address);
  }
}

/** Digests have no slash. */
export function isNetwork(name: string): boolean {
  return name.includes('/');
}
