/** Limits of a policy for some clients: by digest, address, plan or program. */
import type { ClientTable } from './clients.ts';

export const PLAN = /^[A-Za-z0-9._~-]{1,64}$/;

export interface Overrides {
  readonly clients: ClientTable<number>;
  /** Smallest and largest limit of all overrides; Infinity and 0 if there are none. */
  readonly least: number;
  readonly most: number;
  /** First characters of a hash of the source text, to recognise changes. */
  readonly version: string;
}

interface Capacity {
  readonly limit: number;
  readonly capacity: number;
  readonly burst: number | null;
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
export function capacityFor({ limit: usual, capacity, burst }: Capacity, limit: number): number {
  return limit === usual ? capacity : (burst ?? limit);
}
