/**
 * Leases: each request in flight holds one in the counters of policies that limit how many there are at once
 * (algorithms/concurrency.ts). As long as the request lasts its process renews the lease. The leases of a process that died
 * end by themselves. This process knows the leases that it holds. It renews these, reports them to the store after an outage,
 * and counts them where there is no store.
 */
import { hash } from 'node:crypto';
import type { Millis } from '#shared/clock.ts';
import { LEASE_MS } from './algorithms/concurrency.ts';
import type { Bucket } from './charge.ts';
import type { Spent } from './limiter.ts';

/** A lease is renewed when it is so old: twice more before it ends. */
export const RENEWED_AFTER_MS: Millis = LEASE_MS / 3;
/** Length of the holder's name in leases. Redis keeps short names in less memory. */
const NAME_LENGTH = 12;

export interface Lease {
  /** The counter's. */
  readonly key: string;
  /** Its name in that counter. */
  readonly member: string;
}

interface HeldLease extends Lease {
  /** When the store was last told of it, on this process's clock; -Infinity: never. */
  readonly renewedAt: Millis;
}

/** The lease of one of those who asked together. @param leases what `Spent.leases` says */
export function memberOf(leases: string, position: number): string {
  return `${leases}.${position}`;
}

/** The leases of one admitted request. @param position among those who asked together, from 0 */
export function* leasesOf({ buckets, states, leases }: Spent, position: number): Iterable<Lease> {
  if (leases === null) return;
  for (const [i, { key, policy, cost }] of buckets.entries()) {
    // A shadow policy counts up to its limit.
    if (policy.algorithm === 'concurrency' && position < (states[i]?.roomFor(cost) ?? 0))
      yield { key, member: memberOf(leases, position) };
  }
}

/** As many as there are requests in flight, times the counters that each is in. */
export class HeldLeases {
  readonly #name: string;
  #named = 0;
  readonly #held = new Map<string, HeldLease>();
  readonly #counts = new Map<string, number>();

  /** @param holder name of this process among the replicas */
  constructor(holder = '') {
    this.#name = hash('sha256', holder, 'base64url').slice(0, NAME_LENGTH);
  }

  get size(): number {
    return this.#held.size;
  }

  /** A name for the leases of one charge, which nobody else gives. */
  nextName(): string {
    return `${this.#name}.${(this.#named++).toString(36)}`;
  }

  /** How many requests that are counted so are in flight in this process. */
  count({ key }: Pick<Bucket, 'key'>): number {
    return this.#counts.get(key) ?? 0;
  }

  /** @param renewedAt When the store was told of it; -Infinity if this process admitted the request without it. */
  take({ key, member }: Lease, renewedAt: Millis): void {
    const id = idOf(key, member);
    if (!this.#held.has(id)) this.#counts.set(key, (this.#counts.get(key) ?? 0) + 1);
    this.#held.set(id, { key, member, renewedAt });
  }

  give({ key, member }: Lease): void {
    if (!this.#held.delete(idOf(key, member))) return;
    const left = (this.#counts.get(key) ?? 1) - 1;
    if (left > 0) this.#counts.set(key, left);
    else this.#counts.delete(key);
  }

  /** Leases that were last renewed before a moment. */
  renewedBefore(moment: Millis, max: number): Lease[] {
    const due: Lease[] = [];
    for (const lease of this.#held.values()) {
      if (due.length >= max) break;
      if (lease.renewedAt < moment) due.push(lease);
    }
    return due;
  }

  /** The store has renewed these. */
  renewed(leases: readonly Lease[], now: Millis): void {
    for (const { key, member } of leases) {
      const id = idOf(key, member);
      // Ended meanwhile.
      if (this.#held.delete(id)) this.#held.set(id, { key, member, renewedAt: now });
    }
  }
}

function idOf(key: string, member: string): string {
  return `${key} ${member}`;
}
