/**
 * Estimates the store's clock, which all windows use.
 *
 * Heartbeats give an estimate. Every answer gives bounds too: the store read its clock after the call and before the
 * answer arrived. The widest bounds of the last heartbeats count, because the nodes of a Cluster have separate clocks.
 * Without a store this process's own clock is exact.
 */
import type { Clock, Millis } from '#shared/clock.ts';

/** A larger difference means that one of the clocks was set, or that this machine was suspended. */
const CLOCK_JUMP_MS: Millis = 1000;

/** Bounds of the difference: how far the store's clock is ahead of ours. */
interface Bounds {
  readonly least: Millis;
  readonly most: Millis;
}

type ClockChange =
  | { readonly kind: 'none' }
  /** The first estimate. Until now this process used its own clock. */
  | { readonly kind: 'first'; readonly aheadMs: Millis }
  /** A clock was set, so remembered times are wrong. */
  | { readonly kind: 'jump' };

export class StoreClock {
  readonly #clock: Clock;
  /** How far the store's clock is ahead of this process. null before the first heartbeat. */
  #aheadMs: Millis | null = null;
  /** Since the last heartbeat, and between the two before; null if nothing was received. */
  #bounds: Bounds | null = null;
  #boundsBefore: Bounds | null = null;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** The best estimate in whole milliseconds, as in the script. */
  readonly now = (): Millis => Math.floor(this.#clock() + (this.#aheadMs ?? 0));

  /** A lower bound of the store's time. */
  earliest(now = this.#clock()): Millis {
    const least = Math.min(this.#bounds?.least ?? Infinity, this.#boundsBefore?.least ?? Infinity);
    return Math.floor(now + (least === Infinity ? 0 : least));
  }

  /** An upper bound of the store's time. */
  latest(now = this.#clock()): Millis {
    const most = Math.max(this.#bounds?.most ?? -Infinity, this.#boundsBefore?.most ?? -Infinity);
    return Math.ceil(now + (most === -Infinity ? 0 : most));
  }

  /** @param storeNow from an answer @param askedAt on this process's clock, as `heardAt` */
  note(storeNow: Millis, askedAt: Millis, heardAt: Millis): void {
    const least = storeNow - heardAt;
    // The store rounds its time down to whole milliseconds.
    const most = storeNow + 1 - askedAt;
    const { least: leastYet, most: mostYet } = this.#bounds ?? { least, most };
    this.#bounds = { least: Math.min(least, leastYet), most: Math.max(most, mostYet) };
  }

  /** Takes the time of the store from a heartbeat. @returns the change of the estimate */
  noteHeartbeat(storeNow: Millis, askedAt: Millis, heardAt: Millis): ClockChange {
    this.#boundsBefore = this.#bounds;
    this.#bounds = null;
    this.note(storeNow, askedAt, heardAt);
    const before = this.#aheadMs;
    // After a stall of our own event loop this is imprecise: the store's clock may have been read at any time of the
    // wait.
    if (before !== null && heardAt - askedAt > CLOCK_JUMP_MS) return { kind: 'none' };
    this.#aheadMs = storeNow - (askedAt + heardAt) / 2;
    if (before === null) return { kind: 'first', aheadMs: Math.round(this.#aheadMs) };
    if (Math.abs(this.#aheadMs - before) <= CLOCK_JUMP_MS) return { kind: 'none' };
    this.#boundsBefore = null;
    return { kind: 'jump' };
  }
}
