/**
 * The counters that this process remembers, in bounded memory (digest-table.ts), and beside them what else it remembers
 * about clients. With Redis this is a cache: requests over a limit are denied without a call, and an outage begins with
 * these states. Without Redis it is the store.
 *
 * Counters are stored as states on the store's clock. Other processes may have charged more since. So an exhausted
 * counter is still exhausted, unless charges were given back.
 */

import { type CounterState, EMPTY, ruleOf } from '#gateway/algorithms/algorithm.ts';
import type { Identity } from '#gateway/identity/digest.ts';
import type { Counter } from '#gateway/policy/counter.ts';
import { isSettledByReply } from '#gateway/policy/policy.ts';
import type { Millis } from '#shared/clock.ts';
import { BucketState, type What } from './bucket-state.ts';
import { Bucket, type Charge } from './charge.ts';
import type { Adjustment, Answer } from './check.ts';
import { DigestTable } from './digest-table.ts';
import { Histories } from './history.ts';
import { KnownProofs } from './known-proofs.ts';
import { HeldLeases } from './leases.ts';
import { PROVEN_LOCALLY_MS, type Violation } from './limiter.ts';
import type { StoreClock } from './store-clock.ts';

interface KnownCountersOptions {
  /**
   * Maximum number of counters, and of proven credentials, a power of two; 40 bytes each. If fewer credentials were
   * remembered, each request of a forgotten one would cost the store three keys and a report instead of one key.
   */
  readonly countersMax: number;
  /** Name of this process among the replicas, if there are others. */
  readonly replica?: string;
}

const WORD = 2 ** 32;

export class KnownCounters {
  readonly #states: DigestTable;
  readonly proofs: KnownProofs;
  readonly histories: Histories;
  /** Leases of requests in flight. */
  readonly leases: HeldLeases;
  /** When values of buckets that count different ones were used last. */
  readonly #values: DigestTable;

  constructor({ countersMax, replica }: KnownCountersOptions) {
    this.#states = new DigestTable(countersMax);
    this.proofs = new KnownProofs(countersMax);
    this.histories = new Histories(countersMax);
    this.leases = new HeldLeases(replica);
    this.#values = new DigestTable(Math.max(2, countersMax / 4));
  }

  get size(): number {
    return this.#states.size + this.#values.size + this.proofs.size + this.histories.size;
  }

  /**
   * The last known state of a counter. Its real usage is at least as high.
   *
   * @param now on the store's clock
   * @param limit by which a token bucket drains
   */
  state(bucket: Bucket, now: Millis, limit = bucket.limit): CounterState {
    if (bucket.algorithm.isHeld) return { at: now, a: this.leases.count(bucket), b: 0 };
    return bucket.algorithm.advance(this.#read(bucket) ?? EMPTY, now, ruleOf(bucket.policy, limit));
  }

  /** @param now on the store's clock */
  whatOf({ algorithm, policy, valueWords }: Bucket, now: Millis): What {
    if (valueWords === null) return 'request';
    const usedAt = this.#values.get(valueWords)?.until ?? null;
    const isUsed = usedAt !== null && algorithm.windowAt(usedAt, policy) >= algorithm.windowAt(now, policy);
    return isUsed ? 'used-value' : 'new-value';
  }

  /** Records that the value of a bucket was used. Does nothing if the bucket counts requests. */
  use({ valueWords }: Bucket, at: Millis): void {
    if (valueWords !== null) this.#values.put(valueWords, 1, at, 0);
  }

  /** Replaces the state of a counter. */
  set({ words }: Bucket, { at, a, b }: CounterState): void {
    // The backlog of a token bucket may need more than 32 bits. Its upper bits are kept in the field of a second
    // number, which only other algorithms have.
    this.#states.put(words, a % WORD, at, b + Math.floor(a / WORD));
  }

  /** @param now on the store's clock */
  adjust({ bucket, amount, chargedAt }: Adjustment, now: Millis, limit = bucket.limit): void {
    // A value counts once. It is never given back, because other requests with it may have passed since.
    if (bucket.value !== null && (amount < 0 || this.whatOf(bucket, now) === 'used-value')) return;
    const state = this.state(bucket, now, limit);
    this.set(bucket, bucket.algorithm.adjust(state, amount, chargedAt, ruleOf(bucket.policy, limit)));
  }

  /**
   * Stores the counters and credentials of a store's answer.
   *
   * @param askedAt on this process's clock, as `now`; the store decided in between
   */
  learn({ spent, proven }: Answer, askedAt: Millis, now: Millis): void {
    const until = askedAt + PROVEN_LOCALLY_MS;
    for (const credential of proven) this.proofs.prove(credential, until);
    const { buckets, states, admitted } = spent;
    for (let i = 0; i < buckets.length; i++) {
      const bucket = buckets[i];
      const state = states[i] ?? null;
      if (bucket === undefined || state === null) continue;
      if (admitted === 0) for (const one of bucket.unlessProven) this.proofs.noteUnproven(one, now);
      // Do not remember a count of requests in flight, because it is out of date at once.
      if (bucket.algorithm.isHeld) continue;
      const charged = Math.min(admitted, state.roomFor(bucket.cost));
      const after = state.after(state.unitsOf(charged, bucket.cost));
      // The later state counts, because charges may have been given back since the earlier one.
      if ((this.#read(bucket)?.at ?? 0) <= after.at) this.set(bucket, after);
      if (charged > 0 || state.what === 'used-value') this.use(bucket, state.state.at);
    }
  }

  /**
   * Returns the exhausted buckets of a charge; null if there is none, or if only the store can decide.
   *
   * @param now on this process's clock
   */
  exhausted({ buckets }: Charge, now: Millis, storeClock: StoreClock): Violation[] | null {
    let exhausted: Violation[] | null = null;
    for (let i = 0; i < buckets.length; i++) {
      const bucket = buckets[i];
      if (bucket === undefined || bucket.policy.mode !== 'enforce') continue;
      const known = this.#read(bucket);
      if (known === null || !isPredictable(bucket)) continue;
      const { algorithm, policy, cost, capacity, limit, unlessProven } = bucket;
      const rule = ruleOf(policy, limit);
      const latest = algorithm.advance(known, storeClock.latest(now), rule);
      if (algorithm.used(latest, policy.windowMs) + cost <= capacity || cost > capacity) continue;
      // Another replica may know that one of these is proven, so only the store can decide.
      if (!unlessProven.every((one) => this.proofs.isUnproven(one, now))) continue;
      const earliest = algorithm.advance(known, Math.max(known.at, storeClock.earliest(now)), rule);
      const state = new BucketState(policy, earliest, capacity, limit);
      exhausted ??= [];
      exhausted.push({
        policy,
        capacity,
        limit,
        remaining: Math.max(0, capacity - state.used),
        resetMs: state.retryMs(0, cost),
        bucket,
        used: state.used,
        share: capacity,
        canNeverPass: false,
      });
    }
    return exhausted;
  }

  /** Called when the store may have lost its data. The next success of each credential is then reported again. */
  noteLoss(now: Millis): void {
    this.proofs.noteLoss(now);
    this.histories.areLost = true;
  }

  /** Forgets counters that an operator has cleared, and the days of the client. Then it is no regular any more. */
  forget(identity: Identity, counters: readonly Counter[]): void {
    for (const counter of counters) {
      this.#states.delete(new Bucket(counter, identity).words);
    }
    if (this.histories.of(identity) !== null) this.proofs.withdraw(identity);
    this.histories.forget(identity);
  }

  /** Corrects the times of all counters. */
  moveTimes(byMs: Millis): void {
    this.#states.moveTimes(byMs);
    this.#values.moveTimes(byMs);
  }

  /** Forgets all counters. After a clock jump none of them has its right time. */
  forgetCounters(): void {
    this.#states.clear();
    this.#values.clear();
  }

  /** null if the counter is unknown. */
  #read({ words, algorithm }: Bucket): CounterState | null {
    const entry = this.#states.get(words);
    if (entry === null) return null;
    const { until: at, count: a, slack: b } = entry;
    return algorithm.isBacklog ? { at, a: a + b * WORD, b: 0 } : { at, a, b };
  }
}

/** Whether the time at which there is room again is predictable, independent of other requests. */
function isPredictable({ policy, algorithm, value }: Bucket): boolean {
  const { overrides } = policy;
  // Another process may have admitted the value.
  if (value !== null) return false;
  // The time is not predictable, because a charge may be given back at any time.
  if (isSettledByReply(policy) || algorithm.isHeld) return false;
  // The time is not predictable if requests with a larger limit may drain the token bucket sooner.
  if (!algorithm.isBacklog || overrides === null) return true;
  return overrides.clients.networks.size + overrides.clients.plans.size === 0;
}
