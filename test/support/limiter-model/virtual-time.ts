/** Replaces Node's timers by timers that fire on command, so that a test can try every order. */
import type { Millis } from '#shared/clock.ts';

interface Timer {
  readonly owner: number;
  readonly dueAt: Millis;
  readonly callback: () => void;
  unref(): Timer;
}

const real = { setTimeout, clearTimeout, setImmediate };

export class VirtualTime {
  now: Millis;
  #owner = 0;
  /** Timers in the order in which they were set. */
  readonly #timers = new Set<Timer>();
  #immediates: (() => void)[] = [];

  constructor(now: Millis) {
    this.now = now;
  }

  readonly clock = (): Millis => this.now;

  /** Runs `work`, and everything that follows from it without waiting, with this object's timers. */
  async run(owner: number, work: () => void): Promise<void> {
    this.#owner = owner;
    this.#install();
    try {
      work();
      for (;;) {
        await new Promise((resolve) => real.setImmediate(resolve));
        const immediates = this.#immediates;
        if (immediates.length === 0) return;
        this.#immediates = [];
        for (const callback of immediates) callback();
      }
    } finally {
      Object.assign(globalThis, real);
    }
  }

  /** Moves the clock to the earliest timer of one owner, and fires it. @returns false if there is none */
  async fireNext(owner: number): Promise<boolean> {
    let next: Timer | null = null;
    for (const timer of this.#timers)
      if (timer.owner === owner && (next === null || timer.dueAt < next.dueAt)) next = timer;
    if (next === null) return false;
    const { callback, dueAt } = next;
    this.#timers.delete(next);
    this.now = Math.max(this.now, dueAt);
    await this.run(owner, callback);
    return true;
  }

  /** Drops the timers of one owner. */
  stop(owner: number): void {
    for (const timer of this.#timers) if (timer.owner === owner) this.#timers.delete(timer);
  }

  #install(): void {
    Object.assign(globalThis, {
      setTimeout: (callback: () => void, delayMs: Millis): Timer => {
        const timer = { owner: this.#owner, dueAt: this.now + delayMs, callback, unref: () => timer };
        this.#timers.add(timer);
        return timer;
      },
      clearTimeout: (timer: Timer) => this.#timers.delete(timer),
      setImmediate: (callback: () => void) => this.#immediates.push(callback),
    });
  }
}
