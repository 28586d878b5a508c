/**
 * Clients that the operator names: by the digest of an identity, by an address or a network, by a plan, or by a program.
 * The lists, the overrides and the plans are such tables.
 */
import type { Network } from '#shared/client-address.ts';
import { NetworkMap } from '#shared/network-map.ts';

export type ClientName =
  | { readonly kind: 'digest' | 'plan' | 'program'; readonly name: string }
  | { readonly kind: 'network'; readonly network: Network };

export class ClientTable<T extends NonNullable<unknown>> {
  readonly digests = new Map<string, T>();
  readonly networks = new NetworkMap<T>();
  readonly plans = new Map<string, T>();
  /** By the lower-case name, with blanks between its words. */
  readonly programs = new Map<string, T>();

  get size(): number {
    return this.digests.size + this.networks.size + this.plans.size + this.programs.size;
  }

  /** @returns false if the client is already named, and keeps its value */
  add(client: ClientName, value: T): boolean {
    if (client.kind === 'network') return this.networks.add(client.network, value);
    const names = { digest: this.digests, plan: this.plans, program: this.programs }[client.kind];
    if (names.has(client.name)) return false;
    names.set(client.name, value);
    return true;
  }

  /**
   * Finds the value of a client. A digest wins over a network, a longer prefix over a shorter one, and a network over a
   * plan.
   *
   * @param digests all digests that identify the client
   * @param address bytes of its address; null if it is unknown
   * @param plan null if it has none
   */
  find(
    digests: Iterable<string>,
    address: readonly number[] | null,
    plan: string | null = null,
  ): T | undefined {
    const onNetwork = (): T | undefined => (address === null ? undefined : this.networks.find(address));
    return (
      firstIn(this.digests, digests) ?? onNetwork() ?? (plan === null ? undefined : this.plans.get(plan))
    );
  }

  /** @param names the words of a User-Agent, and the names that they may form */
  ofProgram(names: readonly string[]): T | undefined {
    return firstIn(this.programs, names);
  }
}

function firstIn<T>(values: ReadonlyMap<string, T>, names: Iterable<string>): T | undefined {
  for (const name of names) {
    const found = values.get(name);
    if (found !== undefined) return found;
  }
  return undefined;
}
