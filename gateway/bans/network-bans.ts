/** Finds the banned network of an address. A ban of a network has the network as its name, where others have a digest. */
import { NetworkList, type NetworkTable } from '#gateway/policy/network-table.ts';
import { parseNetwork } from '#shared/client-address.ts';

export class NetworkBans {
  readonly #names = new Set<string>();
  /** null after a change, until the next look-up. */
  #table: NetworkTable<string> | null = null;

  get size(): number {
    return this.#names.size;
  }

  /** @param name of any ban */
  add(name: string): void {
    if (!isNetwork(name) || this.#names.has(name)) return;
    this.#names.add(name);
    this.#table = null;
  }

  delete(name: string): void {
    if (this.#names.delete(name)) this.#table = null;
  }

  clear(): void {
    this.#names.clear();
    this.#table = null;
  }

  /** Returns the smallest banned network that contains the address. @param address 4 or 16 bytes */
  find(address: readonly number[]): string | undefined {
    this.#table ??= this.#build();
    return this.#table.find(address);
  }

  #build(): NetworkTable<string> {
    const list = new NetworkList<string>();
    for (const name of this.#names) list.add(parseNetwork(name), name);
    return list.table();
  }
}

/** Digests have no slash. */
export function isNetwork(name: string): boolean {
  return name.includes('/');
}
