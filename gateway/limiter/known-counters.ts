/**
 * The counters and credentials that this process remembers, in bounded memory (counter-table.ts). With Redis this is a
 * cache: requests over a limit are denied without a call, and an outage begins with these states. Without Redis it is
 * the store.
 *
 * Counters are stored as states on the store's clock. Other processes may have charged more since. So an exhausted
 * counter is still exhausted, unless charges were given back.
 */

import { type CounterState, EMPTY, ruleOf } from '#gateway/algorithms/algorithm.ts';
import type { Identity } from '#gateway/identity/digest.ts';
import type { Counter } from '#gateway/policy/counter.ts';
import { isSettledByReply } from '#gateway/policy/policy.ts';
import type { Millis } from '#shared/clock.ts';
import { BucketState } from './bucket-state.ts';
import { Bucket, type Charge } from './charge.ts';
import type { Adjustment, Answer } from './check.ts';
import { CounterTable } from './counter-table.ts';
import { Histories } from './histories.ts';
import { HeldLeases } from './leases.ts';
import { type Exhausted, PROVEN_LOCALLY_MS } from './limiter.ts';
import type { StoreClock } from './store-clock.ts';
import { UsedValues } from './used-values.ts';

interface KnownCountersOptions {
  /** Maximum number of counters, a power of two; 40 bytes each. */
  readonly countersMax: number;
  /** Maximum number of proven credentials, a power of two; 40 bytes each. */
  readonly credentialsMax: number;
  /** Name of this process among the replicas, if there are others. */
  readonly replica?: string;
}

/** How long the store is not asked again about a credential without a proof. */
const UNPROVEN_MS: Millis = 10_000;
/** Size of a separate table, so that a flood of invented credentials does not displace counters. */
const UNPROVEN_MAX = 16_384;
/** The largest value that a record can store. */
const SLACK_MS_MAX: Millis = 2 ** 32 - 1;
const WORD = 2 ** 32;

export class KnownCounters {
  readonly #counters: CounterTable;
  readonly #credentials: CounterTable;
  readonly #unproven: CounterTable;
  readonly histories: Histories;
  /** When this process heard that the store may have lost its data. */
  #lostAt: Millis = Number.NEGATIVE_INFINITY;
  /** Leases of requests in flight. */
  readonly leases: HeldLeases;
  /** The values of buckets that count different ones. */
  readonly values: UsedValues;

  constructor(options: KnownCountersOptions) {
    this.histories = new Histories(options.countersMax);
    this.#counters = new CounterTable(options.countersMax);
    this.leases = new HeldLeases(options.replica);
    this.values = new UsedValues(options.countersMax / 4);
    this.#credentials = new CounterTable(options.credentialsMax);
    this.#unproven = new CounterTable(Math.min(UNPROVEN_MAX, options.countersMax));
  }

  get size(): number {
    return this.#counters.size + this.#credentials.size + this.#unproven.size + this.histories.size;
  }

  /**
   * The last known state of a counter. Its real usage is at least as high.
   *
   * @param now on the store's clock
   * @param limit by which a token bucket drains
   */
  state(bucket: Bucket, now: Millis, limit = bucket.limit): CounterState {
    if (bucket.algorithm.isHeld) return { at: now, a: this.leases.count(bucket), b: 0 };
    const state = bucket.algorithm.advance(this.#read(bucket) ?? EMPTY, now, ruleOf(bucket.policy, limit));
    return bucket.value !== null && this.values.has(bucket, now) ? { ...state, b: 1 } : state;
  }

  /** Replaces the state of a counter. */
  set(bucket: Bucket, { at, a, b }: CounterState): void {
    const { identity, counter } = bucket;
    let place = this.#find(bucket);
    if (place < 0) {
      if (a + b === 0) return;
      const [c, d, e, f] = identity.words;
      const [g, h] = counter.words;
      place = this.#counters.insert(c ^ g, d ^ h, e, f);
    }
    // The backlog of a token bucket may need more than 32 bits. Its upper bits are kept in the field of a second
    // number, which only other algorithms have.
    this.#counters.set(place, a % WORD, at, b + Math.floor(a / WORD));
  }

  /** Stores a state from the store. Answers can arrive out of order. */
  note(bucket: Bucket, heard: CounterState): void {
    const { policy, algorithm, limit } = bucket;
    const known = this.#read(bucket);
    if (known === null || algorithm.isHeld) {
      if (known === null) this.set(bucket, heard);
      return;
    }
    const rule = ruleOf(policy, limit);
    const at = Math.max(known.at, heard.at);
    const before = algorithm.advance(known, at, rule);
    const after = algorithm.advance(heard, at, rule);
    // Returned charges lower a counter, and another limit may have drained a token bucket faster.
    const isLatest = isSettledByReply(policy) || algorithm.isBacklog;
    if (isLatest && known.at !== heard.at) {
      if (heard.at > known.at) this.set(bucket, heard);
    } else this.set(bucket, { at, a: Math.max(before.a, after.a), b: Math.max(before.b, after.b) });
  }

  /** @param now on the store's clock */
  adjust({ bucket, amount, chargedAt }: Adjustment, now: Millis, limit = bucket.limit): void {
    const state = this.state(bucket, now, limit);
    this.set(bucket, bucket.algorithm.adjust(state, amount, chargedAt, ruleOf(bucket.policy, limit)));
  }

  /**
   * Stores the counters and credentials of a store's answer.
   *
   * @param askedAt on this process's clock, as `now`; the store decided in between
   */
  learn({ spent, proven, full }: Answer, askedAt: Millis, now: Millis): void {
    const until = askedAt + PROVEN_LOCALLY_MS;
    for (const { credential, isFresh } of proven) this.prove(credential, until, isFresh ? until : 0);
    for (const { bucket, values, at } of full) this.values.replace(bucket, at, values);
    const { buckets, states, admitted } = spent;
    for (let i = 0; i < buckets.length; i++) {
      const bucket = buckets[i];
      const state = states[i] ?? null;
      if (bucket === undefined || state === null) continue;
      if (admitted === 0) for (const one of bucket.unlessProven) this.noteUnproven(one, now);
      // Do not remember a count of requests in flight, because it is out of date at once.
      if (bucket.algorithm.isHeld) continue;
      const charged = Math.min(admitted, state.roomFor(bucket.cost));
      this.note(bucket, state.after(state.unitsOf(charged, bucket.cost)));
      if (bucket.value !== null && (charged > 0 || state.state.b === 1))
        this.values.add(bucket, state.state.at);
    }
  }

  /**
   * Returns the exhausted buckets of a charge; null if there is none, or if only the store can decide.
   *
   * @param now on this process's clock
   */
  exhausted({ buckets }: Charge, now: Millis, storeClock: StoreClock): Exhausted[] | null {
    let exhausted: Exhausted[] | null = null;
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
      if (!unlessProven.every((one) => this.isUnproven(one, now))) continue;
      // Other processes may have admitted the value, unless all values of the bucket are known.
      if (bucket.value !== null && !this.values.lacks(bucket, latest.at, latest.a)) continue;
      const earliest = algorithm.advance(known, Math.max(known.at, storeClock.earliest(now)), rule);
      const state = new BucketState(policy, earliest, capacity, limit);
      exhausted ??= [];
      exhausted.push({ bucket, used: state.used, resetMs: state.retryMs(0, cost) });
    }
    return exhausted;
  }

  isProven(credential: Identity, now: Millis): boolean {
    const place = this.#credentials.find(...credential.words);
    return place >= 0 && this.#credentials.until(place) > now;
  }

  /** Whether a success of this credential was reported recently. */
  isProofFresh(credential: Identity, now: Millis): boolean {
    const place = this.#credentials.find(...credential.words);
    if (place < 0) return false;
    const freshUntil = this.#credentials.until(place) - this.#credentials.slack(place);
    return freshUntil > Math.max(now, this.#lostAt + PROVEN_LOCALLY_MS);
  }

  /**
   * @param until when this process asks the store again
   * @param freshUntil when the next success is reported; default: at once
   */
  prove({ words }: Identity, until: Millis, freshUntil = 0): void {
    const place = this.#credentials.find(...words);
    const slackMs = Math.ceil(Math.min(until - freshUntil, SLACK_MS_MAX));
    this.#credentials.set(place < 0 ? this.#credentials.insert(...words) : place, 1, until, slackMs);
    this.#unproven.delete(...words);
  }

  /** @returns until when it counts as proven, possibly in the past; null if unknown */
  provenUntil({ words }: Identity): Millis | null {
    const place = this.#credentials.find(...words);
    return place < 0 ? null : this.#credentials.until(place);
  }

  withdraw({ words }: Identity): void {
    this.#credentials.delete(...words);
  }

  /** Records that the store had no proof of this credential. */
  noteUnproven({ words }: Identity, now: Millis): void {
    const place = this.#unproven.find(...words);
    this.#unproven.set(place < 0 ? this.#unproven.insert(...words) : place, 1, now + UNPROVEN_MS, 0);
  }

  /** Called when the store may have lost its data. The next success of each credential is then reported again. */
  noteLoss(now: Millis): void {
    this.#lostAt = now;
    this.histories.lose();
  }

  /** Forgets counters that an operator has cleared, and the days of the client. Then it is no regular any more. */
  forget(identity: Identity, counters: readonly Counter[]): void {
    const [a, b, c, d] = identity.words;
    for (const counter of counters) {
      this.#counters.delete(a ^ counter.words[0], b ^ counter.words[1], c, d);
      this.values.forget(new Bucket(counter, identity).key);
    }
    if (this.histories.of(identity) !== null) this.withdraw(identity);
    this.histories.forget(identity);
  }

  /** Corrects the times of all counters. */
  moveTimes(byMs: Millis): void {
    this.#counters.moveTimes(byMs);
    this.values.moveTimes(byMs);
  }

  /** Forgets all counters. After a clock jump none of them has its right time. */
  forgetCounters(): void {
    this.#counters.clear();
    this.values.clear();
    this.#unproven.clear();
  }

  /** Whether the store had no proof when it was last asked, a short time ago. */
  isUnproven({ words }: Identity, now: Millis): boolean {
    const place = this.#unproven.find(...words);
    return place >= 0 && this.#unproven.until(place) > now;
  }

  /** null if the counter is unknown. */
  #read(bucket: Bucket): CounterState | null {
    const place = this.#find(bucket);
    if (place < 0) return null;
    const at = this.#counters.until(place);
    const a = this.#counters.count(place);
    const b = this.#counters.slack(place);
    return bucket.algorithm.isBacklog ? { at, a: a + b * WORD, b: 0 } : { at, a, b };
  }

  #find({ identity, counter }: Bucket): number {
    const [a, b, c, d] = identity.words;
    const [e, f] = counter.words;
    return this.#counters.find(a ^ e, b ^ f, c, d);
  }
}

/** Whether the time at which there is room again is predictable, independent of other requests. */
function isPredictable({ policy, algorithm }: Bucket): boolean {
  const { overrides } = policy;
  // The time is not predictable, because a charge may be given back at any time.
  if (isSettledByReply(policy) || algorithm.isHeld) return false;
  // The time is not predictable if requests with a larger limit may drain the token bucket sooner.
  if (!algorithm.isBacklog || overrides === null) return true;
  return overrides.networks.size + overrides.plans.size === 0;
}
