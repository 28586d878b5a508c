/** Charges that are not plain, in the memory of this process: every counter is looked at first, and then all are charged, or none. */

import type { Clock, Millis } from '#shared/clock.ts';
import type { Charge, Part } from './charge.ts';
import type { KnownCounters } from './known-counters.ts';
import { memberOf } from './leases.ts';
import { type Level, levelOf } from './level.ts';
import type { LimitListener, Outcome } from './limiter.ts';

export interface GeneralMemoryOptions {
  readonly clock: Clock;
  readonly known: KnownCounters;
  readonly share?: (part: Part) => number;
  readonly replicas?: () => number;
  readonly storeAheadMs?: () => Millis;
  readonly onAdmitted?: (part: Part, windowEndsAt: Millis, units: number) => void;
  readonly onCharged?: (part: Part, units: number, now: Millis) => void;
}

export class GeneralMemory {
  readonly #options: GeneralMemoryOptions;

  constructor(options: GeneralMemoryOptions) {
    this.#options = options;
  }

  spend({ parts, hasLeases }: Charge, listener: LimitListener): void {
    const leases = hasLeases ? this.#options.known.leases.nextName() : null;
    const storeNow = this.#storeNow;
    const levels = parts.map((part) => this.#levelOf(part, storeNow));
    const admitted = parts.every(({ policy, cost }, i) => {
      const level = levels[i] ?? null;
      return level === null || policy.mode === 'shadow' || level.used + cost <= level.capacity;
    });
    if (admitted) {
      for (const [i, part] of parts.entries()) {
        const level = levels[i] ?? null;
        // A shadow policy counts up to its limit.
        if (level !== null && level.used + part.cost <= level.capacity) this.#charge(part, storeNow, leases);
      }
    }
    const used = levels.map((level) => level?.used ?? -1);
    listener.onSpent(
      {
        parts,
        admitted: admitted ? 1 : 0,
        used,
        resetMs: [],
        shares: this.#options.share === undefined ? null : [],
        levels,
        chargedAt: parts.map(() => storeNow),
        leases,
      },
      0,
    );
  }

  /** Windows go by the store's clock. */
  get #storeNow(): Millis {
    return Math.floor(this.#options.clock() + (this.#options.storeAheadMs?.() ?? 0));
  }

  /** null where nothing is charged: the credential is proven. */
  #levelOf(part: Part, storeNow: Millis): Level | null {
    const { clock, known, share } = this.#options;
    const { policy, credential } = part;
    const now = clock();
    if (credential !== null && known.isProven(credential.proof, now)) return null;
    const refill = this.#refillOf(part);
    const held =
      part.counter.isPlain || policy.algorithm === 'concurrency'
        ? known.held(part, now)
        : known.levels.held(part, storeNow, refill);
    return levelOf(policy, held, storeNow, share?.(part) ?? part.capacity, refill);
  }

  #charge(part: Part, storeNow: Millis, leases: string | null): void {
    const { clock, known, storeAheadMs, onAdmitted, onCharged } = this.#options;
    const { policy, cost } = part;
    if (leases !== null && policy.algorithm === 'concurrency') {
      known.leases.take({ key: part.key, member: memberOf(leases, 0) }, Number.NEGATIVE_INFINITY);
    } else if (part.counter.isPlain) {
      const now = clock();
      const endsAt = (Math.floor(storeNow / policy.windowMs) + 1) * policy.windowMs - (storeAheadMs?.() ?? 0);
      known.note(part, known.used(part, now) + cost, endsAt, 0, now);
      onAdmitted?.(part, endsAt, cost);
    } else {
      known.levels.charge(part, cost, storeNow, this.#refillOf(part));
      // Whether it counts will be known later.
      if (policy.count === 'request') onCharged?.(part, cost, storeNow);
    }
  }

  /** Gives back what does not count. */
  conclude(outcomes: readonly Outcome[]): void {
    for (const { part, chargedAt, counts } of outcomes) {
      if (counts) continue;
      const { known } = this.#options;
      known.levels.giveBack(part, part.cost, chargedAt, this.#storeNow, this.#refillOf(part));
    }
  }

  /** Requests per window that a token bucket gets back here. */
  #refillOf({ limit }: Part): number {
    return limit / (this.#options.replicas?.() ?? 1);
  }
}
