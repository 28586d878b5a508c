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
  { a, b }: Held,
  now: Millis,
  capacity = whole,
  refill = limit,
): Level {
  switch (algorithm) {
    case 'fixed-window':
      return new FixedLevel(capacity, a, untilWindowEnd(now, windowMs));
    case 'sliding-window':
      return new SlidingLevel(capacity, a, b, windowMs, untilWindowEnd(now, windowMs));
    case 'token-bucket':
      return new TokenLevel(capacity, a, windowMs, refill);
    case 'concurrency':
      return new ConcurrencyLevel(capacity, a);
    default:
      return algorithm satisfies never;
  }
}

class FixedLevel implements Level {
  readonly capacity: number;
  readonly used: number;
  readonly #leftMs: Millis;

  constructor(capacity: number, used: number, leftMs: Millis) {
    this.capacity = capacity;
    this.used = used;
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
  readonly #current: number;
  readonly #previous: number;
  readonly #windowMs: Millis;
  /** Of the current window. */
  readonly #leftMs: Millis;

  constructor(capacity: number, current: number, previous: number, windowMs: Millis, leftMs: Millis) {
    this.capacity = capacity;
    this.used = current + Math.ceil((previous * leftMs) / windowMs);
    this.#current = current;
    this.#previous = previous;
    this.#windowMs = windowMs;
    this.#leftMs = leftMs;
  }

  resetMs(charged: number): Millis {
    if (this.#current + charged > 0) return this.#leftMs + this.#windowMs;
    return this.#previous > 0 ? this.#leftMs : 0;
  }

  retryMs(charged: number, cost: number): Millis {
    if (cost > this.capacity) return Number.POSITIVE_INFINITY;
    if (this.used + charged + cost <= this.capacity) return 0;
    const current = this.#current + charged;
    const room = this.capacity - cost;
    if (current <= room) return this.#leftMs - this.#leftOf(this.#previous, room - current);
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
  readonly #backlog: number;
  readonly #windowMs: Millis;
  readonly #refill: number;

  constructor(capacity: number, backlog: number, windowMs: Millis, refill: number) {
    this.capacity = capacity;
    this.used = Math.ceil(backlog / windowMs);
    this.#backlog = backlog;
    this.#windowMs = windowMs;
    this.#refill = refill;
  }

  resetMs(charged: number): Millis {
    return this.#untilDrained(this.#backlog + charged * this.#windowMs);
  }

  retryMs(charged: number, cost: number): Millis {
    if (cost > this.capacity) return Number.POSITIVE_INFINITY;
    return this.#untilDrained(this.#backlog + (charged + cost - this.capacity) * this.#windowMs);
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

  constructor(capacity: number, used: number) {
    this.capacity = capacity;
    this.used = used;
  }

  resetMs(charged: number): Millis {
    return this.used + charged > 0 ? TRY_AGAIN_MS : 0;
  }

  retryMs(charged: number, cost: number): Millis {
    if (cost > this.capacity) return Number.POSITIVE_INFINITY;
    return this.used + charged + cost <= this.capacity ? 0 : TRY_AGAIN_MS;
  }
}

/** What is left is kept for credentials with a history, and this one has none: as if it were exhausted. */
export class ClosedLevel implements Level {
  readonly capacity: number;
  readonly used: number;
  /** What is really used. */
  readonly charged: number;
  readonly #level: Level;
  readonly #reserved: number;

  /** @param reserved what is kept of the level's capacity */
  constructor(level: Level, reserved: number) {
    this.capacity = level.capacity;
    this.used = level.capacity;
    this.charged = level.used;
    this.#level = level;
    this.#reserved = reserved;
  }

  resetMs(charged: number): Millis {
    return this.#level.resetMs(charged);
  }

  /** Nothing is charged beside it: it denies. */
  retryMs(_charged: number, cost: number): Millis {
    // Open again once more than what is reserved is left.
    return Math.max(this.#level.retryMs(0, cost), this.#level.retryMs(0, this.#reserved + 1));
  }
}

/** What is reserved is open as long as its credential's own counter is used, and closed when that is empty again. */
export class OwnHistoryLevel implements Level {
  readonly capacity: number;
  readonly used: number;
  readonly #level: Level;
  readonly #reserved: number;
  readonly #own: Level;

  /** @param own of the credential's own counter, to which the same is charged */
  constructor(level: Level, reserved: number, own: Level) {
    this.capacity = level.capacity;
    this.used = level.used;
    this.#level = level;
    this.#reserved = reserved;
    this.#own = own;
  }

  resetMs(charged: number): Millis {
    return this.#level.resetMs(charged);
  }

  retryMs(charged: number, cost: number, fromMs = 0): Millis {
    const retryMs = Math.max(fromMs, this.#level.retryMs(charged, cost));
    if (retryMs < this.#own.resetMs(charged)) return retryMs;
    return Math.max(retryMs, this.#level.retryMs(charged, this.#reserved + 1));
  }
}

/** What a token bucket still holds so much later. */
export function drained(backlog: number, elapsedMs: Millis, refill: number): number {
  return elapsedMs <= 0 ? backlog : Math.max(0, Math.ceil(backlog - elapsedMs * refill));
}
