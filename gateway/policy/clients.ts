/**
 * Clients that the operator names: by the digest of an identity, by an address or a network, by a plan, or by a program.
 * The lists, the overrides and the plans are such tables.
 */
import type { Network } from '#shared/client-address.ts';
import { NetworkMap } from '#shared/network-map.ts';

export type ClientName =
  | { readonly kind: 'digest' | 'plan' | 'program' | 'named'; readonly name: string }
  | { readonly kind: 'network'; readonly network: Network };

export class ClientTable<T extends NonNullable<unknown>> {
  readonly digests = new Map<string, T>();
  readonly networks = new NetworkMap<T>();
  readonly plans = new Map<string, T>();
  /** By the file of networks with names, and the name of one in it, see `namedIn`. */
  readonly named = new Map<string, T>();
  /** By the lower-case name, with blanks between its words. */
  readonly programs = new Map<string, T>();

  /** @returns false if the client is already named, and keeps its value */
  add(client: ClientName, value: T): boolean {
    if (client.kind === 'network') return this.networks.add(client.network, value);
    const names = { digest: this.digests, plan: this.plans, program: this.programs, named: this.named }[
      client.kind
    ];
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

export const PLAN = /^[A-Za-z0-9._~-]{1,64}$/;

export interface Overrides {
  readonly clients: ClientTable<number>;
  /** Smallest and largest limit of all overrides; Infinity and 0 if there are none. */
  readonly least: number;
  readonly most: number;
  /** First characters of a hash of the source text, to recognise changes. */
  readonly version: string;
}

export interface OverrideFacts {
  /** Bytes of the client address; null if unknown. */
  readonly address: readonly number[] | null;
  /** The plan named by a trusted proxy; null if there is none. */
  readonly plan: string | null;
  /** Words of its User-Agent; empty if no override names programs. */
  readonly words: readonly string[];
}

/**
 * Returns the limit of one identity. The most specific override wins: digest, then longest network prefix, then plan,
 * then program.
 */
export function limitFor(
  { limit, overrides }: { readonly limit: number; readonly overrides: Overrides | null },
  digest: string,
  facts: OverrideFacts | null,
): number {
  if (overrides === null || facts === null) return limit;
  const { clients } = overrides;
  return clients.find([digest], facts.address, facts.plan) ?? clients.ofProgram(facts.words) ?? limit;
}

/** Returns how much can be used at once: the burst of a token bucket if one is set, else the limit. */
export function capacityFor(
  { limit: usual, capacity, burst }: { limit: number; capacity: number; burst: number | null },
  limit: number,
): number {
  return limit === usual ? capacity : (burst ?? limit);
}
