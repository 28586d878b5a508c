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

export interface Level {
  /** The most that may be used. */
  readonly capacity: number;
  /** Of it, what is used; whole, rounded up. */
  readonly used: number;
  /** Until all of it is available again, once so much more is charged. */
  resetMs(charged: number): Millis;
  /** Until `cost` finds room, once so much more is charged; 0: at once, Infinity: never. */
  retryMs(charged: number, cost: number): Millis;
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
  readonly #leftMs: Millis;

  constructor(capacity: number, held: Held, leftMs: Millis) {
    this.capacity = capacity;
    this.used = held.a;
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
  readonly #held: Held;
  readonly #windowMs: Millis;
  /** Of the current window. */
  readonly #leftMs: Millis;

  constructor(capacity: number, held: Held, windowMs: Millis, leftMs: Millis) {
    this.capacity = capacity;
    this.used = held.a + Math.ceil((held.b * leftMs) / windowMs);
    this.#held = held;
    this.#windowMs = windowMs;
    this.#leftMs = leftMs;
  }

  resetMs(charged: number): Millis {
    if (this.#held.a + charged > 0) return this.#leftMs + this.#windowMs;
    return this.#held.b > 0 ? this.#leftMs : 0;
  }

  retryMs(charged: number, cost: number): Millis {
    if (cost > this.capacity) return Number.POSITIVE_INFINITY;
    if (this.used + charged + cost <= this.capacity) return 0;
    const current = this.#held.a + charged;
    const room = this.capacity - cost;
    if (current <= room) return this.#leftMs - this.#leftOf(this.#held.b, room - current);
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
  readonly #held: Held;
  readonly #windowMs: Millis;
  readonly #refill: number;

  constructor(capacity: number, held: Held, windowMs: Millis, refill: number) {
    this.capacity = capacity;
    this.used = Math.ceil(held.a / windowMs);
    this.#held = held;
    this.#windowMs = windowMs;
    this.#refill = refill;
  }

  resetMs(charged: number): Millis {
    return this.#untilDrained(this.#held.a + charged * this.#windowMs);
  }

  retryMs(charged: number, cost: number): Millis {
    if (cost > this.capacity) return Number.POSITIVE_INFINITY;
    return this.#untilDrained(this.#held.a + (charged + cost - this.capacity) * this.#windowMs);
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

  constructor(capacity: number, held: Held) {
    this.capacity = capacity;
    this.used = held.a;
  }

  resetMs(charged: number): Millis {
    return this.used + charged > 0 ? TRY_AGAIN_MS : 0;
  }

  retryMs(charged: number, cost: number): Millis {
    if (cost > this.capacity) return Number.POSITIVE_INFINITY;
    return this.used + charged + cost <= this.capacity ? 0 : TRY_AGAIN_MS;
  }
}

/** What a token bucket still holds so much later. */
export function drained(backlog: number, elapsedMs: Millis, refill: number): number {
  return elapsedMs <= 0 ? backlog : Math.max(0, Math.ceil(backlog - elapsedMs * refill));
}
