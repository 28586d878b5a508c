/**
 * Counters of this process: the store when no Redis is configured, and the fallback while Redis is away. The same
 * semantics as the Redis limiter, answered at once.
 *
 * Counters live in one map per window length and are dropped with it when the window ends, so nothing has to be swept.
 * A map that is full forgets its oldest counter: memory stays bounded, and only a flood of a million identities within
 * one window can make a limit generous.
 */
import type { Clock, Millis } from '#shared/clock.ts';
import {
  type Charge,
  effectiveLimit,
  type Limiter,
  PROVEN_IN_STORE_MS,
  PROVEN_LOCALLY_MS,
  type Proof,
  rememberExhausted,
  type Spent,
  untilWindowEnd,
  type Waiter,
} from './limiter.ts';

const COUNTERS_MAX = 1_000_000;
const PROVEN_MAX = 100_000;

export interface MemoryLimiterOptions {
  readonly clock: Clock;
  /** By how much limits are divided; 1 unless this is the fallback of several replicas. */
  readonly divisor?: () => number;
  /** Counters per window length. */
  readonly countersMax?: number;
  /** This is the fallback while the store is away. */
  readonly degraded?: boolean;
}

interface Window {
  id: number;
  counts: BoundedMap<number>;
}

/** Forgets the oldest entry when a new one finds it full. */
class BoundedMap<V> {
  readonly #max: number;
  readonly #entries = new Map<string, V>();
  /** Kept between uses: a fresh one walks over every gap that earlier deletions left, up to a million of them. */
  #oldest: MapIterator<string> | undefined;

  constructor(max: number) {
    this.#max = max;
  }

  get(key: string): V | undefined {
    return this.#entries.get(key);
  }

  set(key: string, value: V): void {
    if (this.#entries.size >= this.#max && !this.#entries.has(key)) {
      this.#oldest ??= this.#entries.keys();
      const oldest = this.#oldest.next();
      if (!oldest.done) this.#entries.delete(oldest.value);
    }
    this.#entries.set(key, value);
  }

  delete(key: string): void {
    this.#entries.delete(key);
  }
}

export class MemoryLimiter implements Limiter {
  readonly #clock: Clock;
  readonly #divisor: () => number;
  readonly #countersMax: number;
  readonly #degraded: boolean;
  readonly #windows = new Map<Millis, Window>();
  readonly #proven = new BoundedMap<Millis>(PROVEN_MAX);

  constructor(options: MemoryLimiterOptions) {
    this.#clock = options.clock;
    this.#divisor = options.divisor ?? (() => 1);
    this.#countersMax = options.countersMax ?? COUNTERS_MAX;
    this.#degraded = options.degraded ?? false;
  }

  spend(charge: Charge, waiter: Waiter): void {
    const now = this.#clock();
    const divisor = this.#divisor();
    const skipUnproven = charge.proof !== null && this.#isProven(charge.proof, now);
    let admitted = 1;
    const used: number[] = [];
    const resetMs: Millis[] = [];
    for (const bucket of charge.buckets) {
      const { policy } = bucket;
      const skipped = bucket.onlyUnproven && skipUnproven;
      const count = skipped ? -1 : (this.#window(policy.windowMs, now).counts.get(bucket.key) ?? 0);
      if (count >= effectiveLimit(policy, divisor) && policy.mode === 'enforce') admitted = 0;
      used.push(count);
      resetMs.push(untilWindowEnd(now, policy.windowMs));
    }
    const spent: Spent = {
      buckets: charge.buckets,
      admitted,
      used,
      resetMs,
      divisor,
      degraded: this.#degraded,
    };
    if (admitted === 1) {
      for (const [i, bucket] of charge.buckets.entries()) {
        const count = used[i] ?? 0;
        const { key, policy } = bucket;
        if (count >= 0 && count < effectiveLimit(policy, divisor))
          this.#window(policy.windowMs, now).counts.set(key, count + 1);
      }
    }
    // The fallback must leave no memory behind that outlives the outage.
    if (!this.#degraded) rememberExhausted(spent, now, this.#clock);
    waiter.onSpent(spent, 0);
  }

  prove(proof: Proof): void {
    const now = this.#clock();
    proof.provenUntil = now + PROVEN_LOCALLY_MS;
    this.#proven.delete(proof.proofKey);
    this.#proven.set(proof.proofKey, now + PROVEN_IN_STORE_MS);
  }

  async close(): Promise<void> {
    this.#windows.clear();
  }

  #isProven(proof: Proof, now: Millis): boolean {
    if (proof.provenUntil > now) return true;
    if ((this.#proven.get(proof.proofKey) ?? 0) <= now) return false;
    proof.provenUntil = now + PROVEN_LOCALLY_MS;
    return true;
  }

  #window(windowMs: Millis, now: Millis): Window {
    const id = Math.floor(now / windowMs);
    let window = this.#windows.get(windowMs);
    if (window === undefined) {
      window = { id, counts: new BoundedMap(this.#countersMax) };
      this.#windows.set(windowMs, window);
    } else if (window.id !== id) {
      window.id = id;
      window.counts = new BoundedMap(this.#countersMax);
    }
    return window;
  }
}
