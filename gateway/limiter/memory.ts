/**
 * Counters of this process: the store when no Redis is configured, and the fallback while Redis is away. The same
 * semantics as the Redis limiter, answered at once. Counting alone begins with what was last known of a counter.
 */

import type { Identity } from '#gateway/identity/digest.ts';
import type { Policy } from '#gateway/policy/policy.ts';
import type { Clock, Millis } from '#shared/clock.ts';
import type { Charge, Part } from './charge.ts';
import { GeneralMemory } from './general-memory.ts';
import type { KnownCounters } from './known-counters.ts';
import { leasesOf } from './leases.ts';
import {
  type Exhausted,
  type Limiter,
  type LimitListener,
  type Outcome,
  PROVEN_LOCALLY_MS,
  PROVEN_MS,
  type Spent,
} from './limiter.ts';

export interface MemoryLimiterOptions {
  readonly clock: Clock;
  readonly known: KnownCounters;
  /** How many of a limit are this process's to admit; unset: all. */
  readonly share?: (part: Part) => number;
  /** Among how many a token bucket's limit is divided; unset: it is not. */
  readonly replicas?: () => number;
  /** By how many milliseconds the store's clock is ahead: windows go by that one. */
  readonly storeAheadMs?: () => Millis;
  /** Told of each admitted request's parts, so that they can be charged to the store later. */
  readonly onAdmitted?: (part: Part, windowEndsAt: Millis, units: number) => void;
  /** The same for counters that are no fixed windows. @param now on the store's clock */
  readonly onCharged?: (part: Part, units: number, now: Millis) => void;
}

export class MemoryLimiter implements Limiter {
  readonly #options: MemoryLimiterOptions;
  readonly #general: GeneralMemory;

  constructor(options: MemoryLimiterOptions) {
    this.#options = options;
    this.#general = new GeneralMemory(options);
  }

  /** Asking costs no more than knowing. */
  knownExhausted(): readonly Exhausted[] | null {
    return null;
  }

  spend(charge: Charge, listener: LimitListener): void {
    if (charge.isPlain) this.#spendPlain(charge, listener);
    else this.#general.spend(charge, listener);
  }

  #spendPlain({ parts }: Charge, listener: LimitListener): void {
    const { clock, known, share } = this.#options;
    const now = clock();
    const used: number[] = [];
    const resetMs: Millis[] = [];
    const shares: number[] | null = share === undefined ? null : [];
    let admitted = 1;
    for (const part of parts) {
      const { policy, credential } = part;
      const limit = share === undefined ? part.limit : share(part);
      let count = -1;
      if (credential === null || !known.isProven(credential.proof, now)) {
        count = known.used(part, now);
        if (policy.mode === 'enforce' && count >= limit) admitted = 0;
      }
      used.push(count);
      resetMs.push(this.#windowEnd(policy, now) - now);
      shares?.push(limit);
    }
    if (admitted === 1) this.#charge(parts, used, shares, now);
    listener.onSpent(
      { parts, admitted, used, resetMs, shares, levels: null, chargedAt: null, leases: null },
      0,
    );
  }

  conclude(outcomes: readonly Outcome[]): void {
    this.#general.conclude(outcomes);
  }

  release(spent: Spent, position: number): void {
    const { leases } = this.#options.known;
    for (const lease of leasesOf(spent, position)) leases.give(lease);
  }

  isProven(credential: Identity): boolean {
    return this.#options.known.isProven(credential, this.#options.clock());
  }

  isProofFresh(credential: Identity): boolean {
    return this.#options.known.isProofFresh(credential, this.#options.clock());
  }

  prove(credential: Identity): void {
    const now = this.#options.clock();
    this.#options.known.prove(credential, now + PROVEN_MS, now + PROVEN_LOCALLY_MS);
  }

  withdraw(credential: Identity): void {
    this.#options.known.withdraw(credential);
  }

  async close(): Promise<void> {
    // Nothing is open.
  }

  #charge(
    parts: readonly Part[],
    used: readonly number[],
    shares: readonly number[] | null,
    now: Millis,
  ): void {
    const { known, onAdmitted } = this.#options;
    for (const [i, part] of parts.entries()) {
      const count = used[i] ?? -1;
      // A shadow policy counts up to its limit.
      if (count < 0 || count >= (shares?.[i] ?? part.limit)) continue;
      const endsAt = this.#windowEnd(part.policy, now);
      known.note(part, count + 1, endsAt, 0, now);
      onAdmitted?.(part, endsAt, 1);
    }
  }

  #windowEnd({ windowMs }: Policy, now: Millis): Millis {
    const aheadMs = this.#options.storeAheadMs?.() ?? 0;
    return (Math.floor((now + aheadMs) / windowMs) + 1) * windowMs - aheadMs;
  }
}
