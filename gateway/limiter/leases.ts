/**
 * Leases: each request in flight holds one in the counters of policies with `algorithm: concurrency`
 * (gateway/algorithms/concurrency.ts). Its process renews the lease while the request lasts. The leases of a process that died
 * expire. This process knows the leases that it holds. It renews these, reports them to the store after an outage, and
 * counts them if there is no store.
 */
import { hash } from 'node:crypto';
import { LEASE_MS } from '#gateway/algorithms/concurrency.ts';
import type { Millis } from '#shared/clock.ts';
import type { Bucket } from './charge.ts';
import type { Spent } from './limiter.ts';

/** Age at which a lease is renewed. So it is renewed twice more before it would expire. */
export const RENEWED_AFTER_MS: Millis = LEASE_MS / 3;
/** Length of the holder's name in leases. Redis keeps short names in less memory. */
const NAME_LENGTH = 12;

export interface Lease {
  /** Key of the counter. */
  readonly key: string;
  /** Name of the lease in that counter. */
  readonly member: string;
}

interface HeldLease extends Lease {
  /** Time at which the store last confirmed the lease, on this process's clock; -Infinity if never. */
  readonly renewedAt: Millis;
}

/** Returns the lease of one request of a batch. @param leases value of `Spent.leases` */
export function memberOf(leases: string, position: number): string {
  return `${leases}.${position}`;
}

/** Yields the leases of one admitted request. @param position in its batch, from 0 */
export function* leasesOf({ buckets, states, leases }: Spent, position: number): Iterable<Lease> {
  if (leases === null) return;
  for (const [i, { key, algorithm, cost }] of buckets.entries()) {
    // With a policy that never denies, more requests pass than the limit, but only so many hold a lease.
    if (algorithm.isHeld && position < (states[i]?.roomFor(cost) ?? 0))
      yield { key, member: memberOf(leases, position) };
  }
}

/** The leases of this process: one for each request in flight and each of its counters. */
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

  /** Returns a unique name for the leases of one charge. */
  nextName(): string {
    return `${this.#name}.${(this.#named++).toString(36)}`;
  }

  /** Returns how many requests of this process are in flight for a counter. */
  count({ key }: Pick<Bucket, 'key'>): number {
    return this.#counts.get(key) ?? 0;
  }

  /** @param renewedAt when the store confirmed it; -Infinity if the store did not take part. */
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

  /** Returns leases that were last renewed before a time. */
  renewedBefore(moment: Millis, max: number): Lease[] {
    const due: Lease[] = [];
    for (const lease of this.#held.values()) {
      if (due.length >= max) break;
      if (lease.renewedAt < moment) due.push(lease);
    }
    return due;
  }

  /** Records that the store has renewed these leases. */
  renewed(leases: readonly Lease[], now: Millis): void {
    for (const { key, member } of leases) {
      const id = idOf(key, member);
      // The request may have ended meanwhile.
      if (this.#held.delete(id)) this.#held.set(id, { key, member, renewedAt: now });
    }
  }
}

function idOf(key: string, member: string): string {
  return `${key} ${member}`;
}
