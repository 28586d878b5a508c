/**
 * Clients that the operator names: by the digest of an identity, by an address or a network, or by a program. The
 * lists, the overrides and the plans are such tables.
 */
import type { Network } from '#shared/client-address.ts';
import { NetworkMap } from '#shared/network-map.ts';

export type ClientName =
  | { readonly kind: 'digest' | 'program'; readonly name: string }
  | { readonly kind: 'network'; readonly network: Network };

export class ClientTable<T extends NonNullable<unknown>> {
  readonly digests = new Map<string, T>();
  readonly networks = new NetworkMap<T>();
  /** By the lower-case name, with blanks between its words. */
  readonly programs = new Map<string, T>();

  get size(): number {
    return this.digests.size + this.networks.size + this.programs.size;
  }

  /** @returns false if the client is already named, and keeps its value */
  add(client: ClientName, value: T): boolean {
    if (client.kind === 'network') return this.networks.add(client.network, value);
    const names = client.kind === 'digest' ? this.digests : this.programs;
    if (names.has(client.name)) return false;
    names.set(client.name, value);
    return true;
  }

  /**
   * Finds the value of a client. A digest wins over a network, and a longer prefix over a shorter one.
   *
   * @param digests all digests that identify the client
   * @param address bytes of its address; null if it is unknown
   */
  find(digests: Iterable<string>, address: readonly number[] | null): T | undefined {
    for (const digest of digests) {
      const found = this.digests.get(digest);
      if (found !== undefined) return found;
    }
    return address === null ? undefined : this.networks.find(address);
  }

  /** @param names the words of a User-Agent, and the names that they may form */
  ofProgram(names: readonly string[]): T | undefined {
    for (const name of names) {
      const found = this.programs.get(name);
      if (found !== undefined) return found;
    }
    return undefined;
  }
}
