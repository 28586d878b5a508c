/**
 * How long calls wait for the store before it counts as lost. Deciding without a store that is only slow admits too much
 * or too little, so the wait is longer than the stalls of a busy machine.
 *
 * Only time in which this process ran is counted. It passes in ticks of a timer, and a late tick counts as one. After a
 * stall of this process the answer may already be in the socket, and after a stall of the machine the store has not run
 * either.
 */
import type { FaultKind } from '#gateway/store/fault.ts';
import type { Millis } from '#shared/clock.ts';

/** How a call was lost: its time was over, or the store said so. */
export type StoreFailure = 'timeout' | FaultKind;

/** The first tick may be short, so a wait takes at least one less. */
const TICKS = 11;

/** Returns the longest time that a call can wait. */
export function waitMsMax(tickMs: Millis): Millis {
  return TICKS * tickMs;
}

/** A call that waits for its answer. */
export interface Wait {
  readonly lastTick: number;
  readonly onLost: (failure: StoreFailure, cause: Error) => void;
}

export class Patience {
  readonly #tickMs: Millis;
  /** Waiting calls, in the order in which they began. */
  readonly #waits = new Set<Wait>();
  #ticks = 0;
  #isTicking = false;

  constructor(tickMs: Millis) {
    this.#tickMs = tickMs;
  }

  /** @param onLost called at most once, and not after `end` */
  begin(onLost: Wait['onLost']): Wait {
    const wait = { lastTick: this.#ticks + TICKS, onLost };
    this.#waits.add(wait);
    if (!this.#isTicking) this.#arm();
    return wait;
  }

  end(wait: Wait): void {
    this.#waits.delete(wait);
  }

  /** Gives up all waiting calls. */
  giveUp(failure: StoreFailure, cause: Error): void {
    const waits = [...this.#waits];
    this.#waits.clear();
    for (const { onLost } of waits) onLost(failure, cause);
  }

  #arm(): void {
    this.#isTicking = true;
    setTimeout(() => this.#tick(), this.#tickMs).unref();
  }

  #tick(): void {
    this.#isTicking = false;
    this.#ticks++;
    const [first] = this.#waits;
    if (first === undefined) return;
    this.#arm();
    if (this.#ticks < first.lastTick) return;
    // Timers run before sockets are read, so let a received answer be read first.
    setImmediate(() => {
      if (this.#waits.has(first))
        this.giveUp('timeout', new Error(`no answer within ${waitMsMax(this.#tickMs)} ms`));
    });
  }
}
