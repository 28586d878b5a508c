/** What this process has heard of those that share its store: how many they are, its place among them, the store's clock. */
import type { Millis } from '#shared/clock.ts';
import type { Heartbeat } from './replicas.ts';

/**
 * So many heartbeats in a row must have heard of fewer replicas before that is believed: after an outage the store knows
 * only those who were quicker than we, and the next outage may begin before it has heard of the others.
 */
const FEWER_HEARD_TO_BELIEVE = 15;
/** The store's clock or ours has been set, or this machine has slept. */
const CLOCK_JUMP_MS: Millis = 1000;

export class HeardReplicas {
  #count = 1;
  #rank = 0;
  #fewerHeard = 0;
  /** null until the store has been heard of. */
  #storeAheadMs: Millis | null = null;

  /** At least 1, this one. */
  get count(): number {
    return this.#count;
  }

  /** From 0, below the count. */
  get rank(): number {
    return this.#rank;
  }

  /** By how much the store's clock is ahead of ours; 0 until that is known. */
  get storeAheadMs(): Millis {
    return this.#storeAheadMs ?? 0;
  }

  /** @returns true: a clock has jumped, so what is remembered would last too long, or end too early */
  hear({ replicas, rank, aheadMs, tookMs }: Heartbeat): boolean {
    this.#fewerHeard = replicas < this.#count ? this.#fewerHeard + 1 : 0;
    if (replicas >= this.#count || this.#fewerHeard >= FEWER_HEARD_TO_BELIEVE) {
      this.#count = Math.max(1, replicas);
      this.#rank = Math.min(rank, this.#count - 1);
    }
    const before = this.#storeAheadMs;
    // Read after a stall of our own event loop: within so long a wait, the store's clock may have been read at any moment.
    if (before !== null && tookMs > CLOCK_JUMP_MS) return false;
    this.#storeAheadMs = aheadMs;
    return before !== null && Math.abs(aheadMs - before) > CLOCK_JUMP_MS;
  }
}
