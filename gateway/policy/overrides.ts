/** Other limits for some clients of a policy: by the digest that is counted, by the client's address, by plan. */
import type { NetworkTable } from './network-table.ts';

/** How the name of a plan may look. */
export const PLAN = /^[A-Za-z0-9._~-]{1,64}$/;

export interface Overrides {
  readonly digests: ReadonlyMap<string, number>;
  readonly networks: NetworkTable<number>;
  readonly plans: ReadonlyMap<string, number>;
  readonly size: number;
  /** The smallest limit of them, and the largest; of none infinite, and 0. */
  readonly least: number;
  readonly most: number;
  /** The beginning of a hash of how they are written. */
  readonly version: string;
}

/** A policy's limit, and the overrides of it. */
interface Overridable {
  readonly limit: number;
  readonly overrides: Overrides | null;
}

/** A policy's limit, and how much of it can be used at once. */
interface Capacity {
  readonly limit: number;
  readonly capacity: number;
  readonly burst: number | null;
}

/** What of a request, beside whom it is counted for, overrides may be for. */
export interface OverrideFacts {
  /** Bytes of the client's address; null: it cannot be read. */
  readonly address: readonly number[] | null;
  /** As a trusted proxy says; null: none does. */
  readonly plan: string | null;
}

/** The limit of one identity. What names the client most precisely wins: its digest, the longest prefix, the plan. */
export function limitFor(
  { limit, overrides }: Overridable,
  digest: string,
  facts: OverrideFacts | null,
): number {
  if (overrides === null || facts === null) return limit;
  const named = overrides.digests.get(digest);
  if (named !== undefined) return named;
  const placed = facts.address === null ? undefined : overrides.networks.find(facts.address);
  if (placed !== undefined) return placed;
  return (facts.plan === null ? undefined : overrides.plans.get(facts.plan)) ?? limit;
}

/** How much of a limit can be used at once: all of it; of a token bucket with a burst that, whatever the limit. */
export function capacityFor({ limit: usual, capacity, burst }: Capacity, limit: number): number {
  return limit === usual ? capacity : (burst ?? limit);
}
