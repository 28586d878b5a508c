/**
 * What this process knows of counters and credentials, in bounded bytes (counter-table.ts). Beside a store it is a cache:
 * it spares the store what is known to be exhausted, and counting alone begins from it. Without a store it is the store.
 */

import type { Identity } from '#gateway/identity/digest.ts';
import type { Counter } from '#gateway/policy/counter.ts';
import type { Millis } from '#shared/clock.ts';
import type { Charge, Part } from './charge.ts';
import { CounterTable } from './counter-table.ts';
import type { GivenBack } from './general-check.ts';
import { KnownLevels } from './known-levels.ts';
import { HeldLeases } from './leases.ts';
import type { Held } from './level.ts';
import type { Exhausted } from './limiter.ts';

export interface KnownCountersOptions {
  /** Counters that are remembered, a power of two; 40 bytes each. */
  readonly countersMax: number;
  /** Credentials known to be proven, a power of two; 40 bytes each. */
  readonly credentialsMax: number;
  /** Name of this process among the replicas, where there are others. */
  readonly replica?: string;
}

/** For so long the store is not asked again about a credential of which it had no proof. */
const UNPROVEN_MS: Millis = 10_000;
/** A table of their own: a flood of invented credentials must not push out what is known of counters. */
const UNPROVEN_MAX = 16_384;
/** As much as a record holds. */
const SLACK_MS_MAX: Millis = 2 ** 32 - 1;

export class KnownCounters {
  readonly #counters: CounterTable;
  readonly #credentials: CounterTable;
  readonly #unproven: CounterTable;
  /** Of counters that are not plain. */
  readonly levels: KnownLevels;
  /** Of requests in flight. */
  readonly leases: HeldLeases;

  constructor(options: KnownCountersOptions) {
    this.#counters = new CounterTable(options.countersMax);
    this.levels = new KnownLevels(this.#counters);
    this.leases = new HeldLeases(options.replica);
    this.#credentials = new CounterTable(options.credentialsMax);
    this.#unproven = new CounterTable(Math.min(UNPROVEN_MAX, options.countersMax));
  }

  get size(): number {
    return this.#counters.size + this.#credentials.size + this.#unproven.size;
  }

  /** @returns what was used in the window that contains `now`, as far as known: at least that much */
  used(part: Part, now: Millis): number {
    const place = this.#find(part);
    if (place < 0 || this.#counters.until(place) + this.#counters.slack(place) <= now) return 0;
    return this.#counters.count(place);
  }

  /** What a counter holds, whatever its algorithm. */
  held(part: Part, now: Millis): Held {
    const { counter, limit, policy } = part;
    if (counter.isPlain) return { a: this.used(part, now), b: 0 };
    if (policy.algorithm === 'concurrency') return { a: this.leases.count(part), b: 0 };
    return this.levels.held(part, Math.floor(now), limit);
  }

  /**
   * Within one window counts only grow, in whatever order answers come.
   *
   * @param endsAt when the window ends, at the earliest
   * @param slackMs how much later that may be
   */
  note(part: Part, used: number, endsAt: Millis, slackMs: Millis, now: Millis): void {
    let place = this.#find(part);
    if (place < 0) {
      const [a, b, c, d] = part.identity.words;
      const [e, f] = part.counter.words;
      place = this.#counters.insert(a ^ e, b ^ f, c, d);
    } else if (this.#counters.until(place) > now && this.#counters.count(place) > used) return;
    this.#counters.set(place, used, endsAt, Math.ceil(slackMs));
  }

  /** What was charged to nobody is given back to the store. @param storeNow on the store's clock, as `chargedAt` */
  giveBack({ part, units, chargedAt }: GivenBack, now: Millis, storeNow: Millis): void {
    const place = this.#find(part);
    if (place >= 0 && this.#counters.until(place) > now) {
      const count = Math.max(0, this.#counters.count(place) - units);
      this.#counters.set(place, count, this.#counters.until(place), this.#counters.slack(place));
    }
    if (!part.counter.isPlain) this.levels.giveBack(part, units, chargedAt, storeNow, part.limit);
  }

  /** The exhausted parts of a charge; null when there is none, or only one of which the store has to be asked. */
  exhausted(charge: Charge, now: Millis): Exhausted[] | null {
    let exhausted: Exhausted[] | null = null;
    const { parts } = charge;
    for (let i = 0; i < parts.length; i++) {
      const part = parts[i];
      if (part === undefined || part.policy.mode === 'shadow') continue;
      const place = this.#find(part);
      if (place < 0) continue;
      const endsAt = this.#counters.until(place);
      if (!isForeseeable(part)) continue;
      if (endsAt <= now) continue;
      const used = this.#counters.count(place);
      if (used + part.cost <= part.capacity) continue;
      // Another replica may know that this credential is proven: only the store can say.
      if (part.credential !== null && !this.#isUnproven(part.credential.proof, now)) continue;
      exhausted ??= [];
      exhausted.push({
        part,
        used,
        resetMs: endsAt + this.#counters.slack(place) - now,
      });
    }
    return exhausted;
  }

  isProven(credential: Identity, now: Millis): boolean {
    const place = this.#credentials.find(...credential.words);
    return place >= 0 && this.#credentials.until(place) > now;
  }

  /** This process saw it work lately. */
  isProofFresh(credential: Identity, now: Millis): boolean {
    const place = this.#credentials.find(...credential.words);
    return place >= 0 && this.#credentials.until(place) - this.#credentials.slack(place) > now;
  }

  /**
   * @param until when this process asks again
   * @param freshUntil when the next success is reported; unset: at once
   */
  prove({ words }: Identity, until: Millis, freshUntil = 0): void {
    const place = this.#credentials.find(...words);
    const slackMs = Math.ceil(Math.min(until - freshUntil, SLACK_MS_MAX));
    this.#credentials.set(place < 0 ? this.#credentials.insert(...words) : place, 1, until, slackMs);
    this.#unproven.delete(...words);
  }

  /** @returns until when it counts as proven, which may be past; null where nothing is known */
  provenUntil({ words }: Identity): Millis | null {
    const place = this.#credentials.find(...words);
    return place < 0 ? null : this.#credentials.until(place);
  }

  withdraw({ words }: Identity): void {
    this.#credentials.delete(...words);
  }

  /** The store had no proof of this credential. */
  noteUnproven({ words }: Identity, now: Millis): void {
    const place = this.#unproven.find(...words);
    this.#unproven.set(place < 0 ? this.#unproven.insert(...words) : place, 1, now + UNPROVEN_MS, 0);
  }

  /** An operator has cleared these counters. */
  forget(identity: Identity, counters: readonly Counter[]): void {
    const [a, b, c, d] = identity.words;
    for (const { words } of counters) this.#counters.delete(a ^ words[0], b ^ words[1], c, d);
    for (const counter of counters) if (!counter.isPlain) this.levels.forget(identity, counter);
  }

  /** After a jump of the clock nothing that is known of counters has its right time any more. */
  forgetCounters(): void {
    this.#counters.clear();
    this.#unproven.clear();
  }

  #isUnproven({ words }: Identity, now: Millis): boolean {
    const place = this.#unproven.find(...words);
    return place >= 0 && this.#unproven.until(place) > now;
  }

  #find({ identity, counter }: Part): number {
    const [a, b, c, d] = identity.words;
    const [e, f] = counter.words;
    return this.#counters.find(a ^ e, b ^ f, c, d);
  }
}

/**
 * Does it follow from one answer of the store when there is room again? With another limit a sliding window has room at
 * another moment, and a token bucket is drained sooner by requests that come with a larger one.
 */
export function isForeseeable({
  counter,
  policy: { algorithm, limit: usual, overrides },
  limit,
}: Part): boolean {
  if (counter.isPlain) return true;
  if (limit !== usual) return false;
  return (
    algorithm !== 'token-bucket' || overrides === null || overrides.networks.size + overrides.plans.size === 0
  );
}
