/**
 * The store's clock, by which all windows go, as far as this process knows it.
 *
 * Heartbeats give an estimate. Every answer gives bounds as well: the store read its clock after it was asked and before it
 * was heard. The widest bounds of the last heartbeats count, since the nodes of a Cluster have a clock each. Without a
 * store this process's own clock is exact.
 */
import type { Clock, Millis } from '#shared/clock.ts';

/** The store's clock or ours has been set, or this machine has slept. */
const CLOCK_JUMP_MS: Millis = 1000;

/** By how much the store's clock is ahead of ours. */
interface Bounds {
  readonly least: Millis;
  readonly most: Millis;
}

type ClockChange =
  | { readonly kind: 'none' }
  /** Until now this process went by its own clock, which is so much behind. */
  | { readonly kind: 'first'; readonly aheadMs: Millis }
  /** Something has set a clock, so what is remembered has the wrong time. */
  | { readonly kind: 'jump' };

export class StoreClock {
  readonly #clock: Clock;
  /** null before the first heartbeat. */
  #aheadMs: Millis | null = null;
  /** Since the last heartbeat, and between that and the one before; null: nothing was heard. */
  #bounds: Bounds | null = null;
  #boundsBefore: Bounds | null = null;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** The best estimate, whole, as the script has it. */
  readonly now = (): Millis => Math.floor(this.#clock() + (this.#aheadMs ?? 0));

  /** It is surely no earlier. */
  earliest(now = this.#clock()): Millis {
    const least = Math.min(this.#bounds?.least ?? Infinity, this.#boundsBefore?.least ?? Infinity);
    return Math.floor(now + (least === Infinity ? 0 : least));
  }

  /** It is surely no later. */
  latest(now = this.#clock()): Millis {
    const most = Math.max(this.#bounds?.most ?? -Infinity, this.#boundsBefore?.most ?? -Infinity);
    return Math.ceil(now + (most === -Infinity ? 0 : most));
  }

  /** @param storeNow as an answer has it @param askedAt on this process's clock, as `heardAt` */
  note(storeNow: Millis, askedAt: Millis, heardAt: Millis): void {
    const least = storeNow - heardAt;
    // Its clock is cut to whole milliseconds.
    const most = storeNow + 1 - askedAt;
    const { least: leastYet, most: mostYet } = this.#bounds ?? { least, most };
    this.#bounds = { least: Math.min(least, leastYet), most: Math.max(most, mostYet) };
  }

  /** The same for a heartbeat. @returns how the estimate has changed */
  noteHeartbeat(storeNow: Millis, askedAt: Millis, heardAt: Millis): ClockChange {
    this.#boundsBefore = this.#bounds;
    this.#bounds = null;
    this.note(storeNow, askedAt, heardAt);
    const before = this.#aheadMs;
    // Read after a stall of our own event loop: within so long a wait, the store's clock may have been read at any moment.
    if (before !== null && heardAt - askedAt > CLOCK_JUMP_MS) return { kind: 'none' };
    this.#aheadMs = storeNow - (askedAt + heardAt) / 2;
    if (before === null) return { kind: 'first', aheadMs: Math.round(this.#aheadMs) };
    if (Math.abs(this.#aheadMs - before) <= CLOCK_JUMP_MS) return { kind: 'none' };
    this.#boundsBefore = null;
    return { kind: 'jump' };
  }
}
