/**
 * What a counter holds at a moment, by each algorithm. Pure, and in whole numbers, so that memory and the store's script
 * (general-script.ts) work out the very same: a limit times a window in milliseconds stays below 2^52 (policy/load.ts).
 *
 * A sliding window is two aligned ones, of which the earlier counts for as much of it as still lies within the last
 * window's length: `current + ceil(previous * left / window)`. A token bucket holds a backlog in units of a request
 * divided by the window's milliseconds: each request adds as many as the window has milliseconds, each millisecond takes
 * away as many as the limit. The backlog does not depend on the limit, so another limit applies at once.
 */
import type { Policy } from '#gateway/policy/policy.ts';
import type { Millis } from '#shared/clock.ts';
import { closedTo, closedToRepeated, reservedOf } from './unproven-budget.ts';

export interface Level {
  /** The most that may be used. */
  readonly capacity: number;
  /** Of it, what is used; whole, rounded up. */
  readonly used: number;
  /** What it was worked out from. */
  readonly held: Held;
  /** Until all of it is available again, once so much more is charged. */
  resetMs(charged: number): Millis;
  /**
   * Until `cost` finds room, once so much more is charged; 0: at once, Infinity: never.
   *
   * @param fromMs not before that; of meaning where there can be less room later
   */
  retryMs(charged: number, cost: number, fromMs?: Millis): Millis;
}

/** Milliseconds until the window that contains `now` ends. Windows are aligned to the epoch. */
export function untilWindowEnd(now: Millis, windowMs: Millis): Millis {
  return windowMs - (now % windowMs);
}

/** What a counter holds: the count (of requests, or of those in flight) and nothing; the counts of the current and the previous window; the backlog and nothing. */
export interface Held {
  readonly a: number;
  readonly b: number;
}

export const NOTHING: Held = { a: 0, b: 0 };

/**
 * @param now on the store's clock, whole
 * @param capacity another one than the policy's: an override's, or a share
 * @param refill of a token bucket, in requests per window: as of a share, the limit divided by the replicas
 */
export function levelOf(
  { algorithm, windowMs, limit, capacity: whole }: Policy,
  held: Held,
  now: Millis,
  capacity = whole,
  refill = limit,
): Level {
  switch (algorithm) {
    case 'fixed-window':
      return new FixedLevel(capacity, held, untilWindowEnd(now, windowMs));
    case 'sliding-window':
      return new SlidingLevel(capacity, held, windowMs, untilWindowEnd(now, windowMs));
    case 'token-bucket':
      return new TokenLevel(capacity, held, windowMs, refill);
    case 'concurrency':
      return new ConcurrencyLevel(capacity, held);
    default:
      return algorithm satisfies never;
  }
}

class FixedLevel implements Level {
  readonly capacity: number;
  readonly used: number;
  readonly held: Held;
  readonly #leftMs: Millis;

  constructor(capacity: number, held: Held, leftMs: Millis) {
    this.capacity = capacity;
    this.used = held.a;
    this.held = held;
    this.#leftMs = leftMs;
  }

  resetMs(): Millis {
    return this.#leftMs;
  }

  retryMs(charged: number, cost: number): Millis {
    if (cost > this.capacity) return Number.POSITIVE_INFINITY;
    return this.used + charged + cost <= this.capacity ? 0 : this.#leftMs;
  }
}

class SlidingLevel implements Level {
  readonly capacity: number;
  readonly used: number;
  readonly held: Held;
  readonly #windowMs: Millis;
  /** Of the current window. */
  readonly #leftMs: Millis;

  constructor(capacity: number, held: Held, windowMs: Millis, leftMs: Millis) {
    this.capacity = capacity;
    this.used = held.a + Math.ceil((held.b * leftMs) / windowMs);
    this.held = held;
    this.#windowMs = windowMs;
    this.#leftMs = leftMs;
  }

  resetMs(charged: number): Millis {
    if (this.held.a + charged > 0) return this.#leftMs + this.#windowMs;
    return this.held.b > 0 ? this.#leftMs : 0;
  }

  retryMs(charged: number, cost: number): Millis {
    if (cost > this.capacity) return Number.POSITIVE_INFINITY;
    if (this.used + charged + cost <= this.capacity) return 0;
    const current = this.held.a + charged;
    const room = this.capacity - cost;
    if (current <= room) return this.#leftMs - this.#leftOf(this.held.b, room - current);
    return this.#leftMs + this.#windowMs - this.#leftOf(current, room);
  }

  /** How much of a window may be left for its count to weigh no more than `room`. */
  #leftOf(count: number, room: number): Millis {
    return Math.floor((room * this.#windowMs) / count);
  }
}

class TokenLevel implements Level {
  readonly capacity: number;
  readonly used: number;
  readonly held: Held;
  readonly #windowMs: Millis;
  readonly #refill: number;

  constructor(capacity: number, held: Held, windowMs: Millis, refill: number) {
    this.capacity = capacity;
    this.used = Math.ceil(held.a / windowMs);
    this.held = held;
    this.#windowMs = windowMs;
    this.#refill = refill;
  }

  resetMs(charged: number): Millis {
    return this.#untilDrained(this.held.a + charged * this.#windowMs);
  }

  retryMs(charged: number, cost: number): Millis {
    if (cost > this.capacity) return Number.POSITIVE_INFINITY;
    return this.#untilDrained(this.held.a + (charged + cost - this.capacity) * this.#windowMs);
  }

  #untilDrained(backlog: number): Millis {
    return backlog <= 0 ? 0 : Math.ceil(backlog / this.#refill);
  }
}

/** Nobody knows when a request in flight will end. */
const TRY_AGAIN_MS: Millis = 1000;

class ConcurrencyLevel implements Level {
  readonly capacity: number;
  readonly used: number;
  readonly held: Held;

  constructor(capacity: number, held: Held) {
    this.capacity = capacity;
    this.used = held.a;
    this.held = held;
  }

  resetMs(charged: number): Millis {
    return this.used + charged > 0 ? TRY_AGAIN_MS : 0;
  }

  retryMs(charged: number, cost: number): Millis {
    if (cost > this.capacity) return Number.POSITIVE_INFINITY;
    return this.used + charged + cost <= this.capacity ? 0 : TRY_AGAIN_MS;
  }
}

/** Of an address's counter for credentials that have not worked, as one without a history meets it (unproven-budget.ts). */
export class UnprovenLevel implements Level {
  readonly capacity: number;
  readonly used: number;
  readonly held: Held;
  readonly #level: Level;
  readonly #own: Level;

  /** @param own of the credential's own counter, to which the same is charged */
  constructor(level: Level, own: Level) {
    this.capacity = level.capacity;
    this.used = level.used;
    this.held = level.held;
    this.#level = level;
    this.#own = own;
  }

  /** Is what is left closed, once so much more is charged? */
  isClosedAfter(charged: number): boolean {
    const used = this.used + charged;
    const closed = closedTo(this.#own.used + charged, used, this.capacity);
    return closed > 0 && this.capacity - used <= closed;
  }

  /** How much is used at least until `retryMs`. */
  atLeastUsed(charged: number, cost: number): number {
    return this.capacity - Math.max(cost - 1, this.#roomToWaitFor(charged) - 1);
  }

  resetMs(charged: number): Millis {
    return this.#level.resetMs(charged);
  }

  retryMs(charged: number, cost: number, fromMs = 0): Millis {
    const retryMs = this.#level.retryMs(charged, cost);
    // Alone at its address it stays that as long as anything of its own is used.
    if (this.#isAlone(charged) && Math.max(fromMs, retryMs) < this.#own.resetMs(charged)) return retryMs;
    return Math.max(retryMs, this.#level.retryMs(charged, this.#roomToWaitFor(charged)));
  }

  /** With so much room it is let in, whatever it and others have used by then. */
  #roomToWaitFor(charged: number): number {
    const isNew = this.#own.used + charged === 0;
    const closed = isNew || this.#isAlone(charged) ? reservedOf : closedToRepeated;
    return closed(this.capacity) + 1;
  }

  /** All that its address has used is its own, and goes at the same pace. */
  #isAlone(charged: number): boolean {
    const { held, used } = this.#own;
    const isSame = held.a === this.held.a && held.b === this.held.b;
    return isSame && used + charged > 0 && this.#own.resetMs(charged) === this.resetMs(charged);
  }
}

/** What is used once so much more is charged; all of it where what is left is closed to whoever asks. */
export function usedAfter(level: Level, charged: number): number {
  const used = level.used + charged;
  const isClosed = level instanceof UnprovenLevel && level.isClosedAfter(charged);
  return isClosed ? Math.max(used, level.capacity) : used;
}

/** What a token bucket still holds so much later. */
export function drained(backlog: number, elapsedMs: Millis, refill: number): number {
  return elapsedMs <= 0 ? backlog : Math.max(0, Math.ceil(backlog - elapsedMs * refill));
}
