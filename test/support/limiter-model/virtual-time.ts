/** Replaces Node's timers by timers that fire on command, so that a test can try every order. */
import type { Millis } from '#shared/clock.ts';

interface Timer {
  readonly owner: number;
  readonly dueAt: Millis;
  readonly callback: () => void;
  unref(): Timer;
}

const real = { setTimeout, clearTimeout, setImmediate };
/** The time in whose timers work runs now; null for Node's timers. */
let current: VirtualTime | null = null;
/** Whether the timers of this thread ask for `current`. Replacing them for each run took a fifth of the search. */
let isInstalled = false;

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
    if (!isInstalled) install();
    current = this;
    try {
      work();
      for (;;) {
        await new Promise((resolve) => process.nextTick(resolve));
        const immediates = this.#immediates;
        if (immediates.length === 0) return;
        this.#immediates = [];
        for (const callback of immediates) callback();
      }
    } finally {
      current = null;
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

  set(callback: () => void, delayMs: Millis): Timer {
    const timer = { owner: this.#owner, dueAt: this.now + delayMs, callback, unref: () => timer };
    this.#timers.add(timer);
    return timer;
  }

  clear(timer: Timer): void {
    this.#timers.delete(timer);
  }

  soon(callback: () => void): void {
    this.#immediates.push(callback);
  }
}

function install(): void {
  isInstalled = true;
  Object.assign(globalThis, {
    setTimeout: Object.assign(
      (callback: () => void, delayMs: Millis, ...given: []) =>
        current === null ? real.setTimeout(callback, delayMs, ...given) : current.set(callback, delayMs),
      real.setTimeout,
    ),
    clearTimeout: (timer: Timer & NodeJS.Timeout) =>
      current === null ? real.clearTimeout(timer) : current.clear(timer),
    setImmediate: Object.assign(
      (callback: () => void, ...given: []) =>
        current === null ? real.setImmediate(callback, ...given) : current.soon(callback),
      real.setImmediate,
    ),
  });
}
