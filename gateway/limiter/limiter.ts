/**
 * Counting, and nothing else.
 *
 * A `Bucket` is one counter: a policy's bucket for one identity. A `Charge` is the list of buckets that a request has
 * to be charged to, all or none. A `Limiter` decides charges: each in one atomic step, on the store's own clock, in
 * fixed windows aligned to the epoch. A denied request is a result, not an error, and is charged nowhere.
 *
 * Requests of one turn of the event loop with the same charge are decided together: `n` of them ask once, `admitted`
 * says how many of the n passed, and the first ones in order of arrival are those. The verdicts are the same as those
 * of n single calls in a row.
 */

import type { Policy } from '#gateway/policy/policy.ts';
import type { Clock, Millis } from '#shared/clock.ts';

export class Bucket {
  /** Its key in the store: no address and no credential, only a digest. */
  readonly key: string;
  readonly policy: Policy;
  /** Counts an address's requests with credentials that never worked; skipped once the credential is proven. */
  readonly onlyUnproven: boolean;
  /** Known to be exhausted until then, at the earliest: no need to ask the store. */
  exhaustedUntil: Millis = 0;
  /** When its window has surely ended. At or after `exhaustedUntil`; the store's answer travelled in between. */
  resetsAt: Millis = 0;

  constructor(key: string, policy: Policy, onlyUnproven: boolean) {
    this.key = key;
    this.policy = policy;
    this.onlyUnproven = onlyUnproven;
  }
}

/** Whose credential a charge concerns, so that an answer can prove it (GATEWAY.md §2, random-key floods). */
export interface Proof {
  /** Key of the marker in the store that says: this credential has worked. */
  readonly proofKey: string;
  /** Known here to be proven until then. */
  provenUntil: Millis;
}

export class Charge {
  readonly buckets: readonly Bucket[];
  /** The credential that is still unproven here; null when none is presented or it is proven. */
  readonly proof: Proof | null;
  /**
   * Where it stands among those about to ask, if it does. A number, not the list of who waits: charges live long, and
   * each pointer from an old object to a young one is work for the garbage collector.
   */
  place = 0;
  /** What remains of this charge while the store is away; filled by the outage rule. */
  local: Charge | null = null;

  constructor(buckets: readonly Bucket[], proof: Proof | null) {
    this.buckets = buckets;
    this.proof = proof;
  }
}

/** What came of a charge, shared by all that asked together. */
export interface Spent {
  /** A bucket whose `used` is -1 was skipped: the credential turned out to be proven. */
  readonly buckets: readonly Bucket[];
  /** The first so many of those who asked are admitted. */
  readonly admitted: number;
  /** Per bucket: what was charged before the first of those who asked. */
  readonly used: readonly number[];
  /** Per bucket: until its window ends, on the store's clock. */
  readonly resetMs: readonly Millis[];
  /** Effective limits are the policies' limits divided by this: 1, or the replicas while the store is away. */
  readonly divisor: number;
  /** Decided without the store. */
  readonly degraded: boolean;
}

export interface Waiter {
  /** @param position among those who asked together, from 0: admitted when below `spent.admitted` */
  onSpent(spent: Spent, position: number): void;
  /** The store is away and a policy says: deny. */
  onStoreUnavailable(): void;
}

export interface Limiter {
  /** Answers the waiter exactly once, now or later, within the time budget. Never throws. */
  spend(charge: Charge, waiter: Waiter): void;
  /** Remembers, for all replicas, that this credential has worked. */
  prove(proof: Proof): void;
  close(): Promise<void>;
}

/** How long this process believes that a credential is proven before it asks the store again. */
export const PROVEN_LOCALLY_MS: Millis = 3_600_000;
/** How long the store remembers a proven credential after it last worked. */
export const PROVEN_IN_STORE_MS: Millis = 86_400_000;

export function effectiveLimit(policy: Policy, divisor: number): number {
  return divisor <= 1 ? policy.limit : Math.max(1, Math.floor(policy.limit / divisor));
}

/** Milliseconds until the window that contains `now` ends. Windows are aligned to the epoch. */
export function untilWindowEnd(now: Millis, windowMs: Millis): Millis {
  return windowMs - (now % windowMs);
}

/**
 * Remembers exhausted buckets, so that during an attack a denial costs neither store nor upstream.
 *
 * @param askedAt before the store was asked: the memory ends at or before the window does, never later
 */
export function rememberExhausted(spent: Spent, askedAt: Millis, clock: Clock): void {
  for (const [i, bucket] of spent.buckets.entries()) {
    const used = spent.used[i] ?? 0;
    if (used < 0 || bucket.policy.mode === 'shadow') continue;
    if (used + spent.admitted < effectiveLimit(bucket.policy, spent.divisor)) continue;
    const resetMs = spent.resetMs[i] ?? 0;
    bucket.exhaustedUntil = askedAt + resetMs - 1;
    bucket.resetsAt = clock() + resetMs;
  }
}
