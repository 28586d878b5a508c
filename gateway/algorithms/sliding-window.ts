/**
 * A sliding window, estimated from two aligned windows: `a` counts the units of the current one, `b` those of the
 * previous one. `b` counts in proportion to its overlap with the last window's length: `a + ceil(b * left / window)`.
 *
 * In Redis the value is a text: the number of the current window, `a` and `b`.
 */
import type { Millis } from '#shared/clock.ts';
import {
  type Algorithm,
  COUNT_MAX,
  type CounterState,
  countableIn,
  PRODUCT_MAX,
  untilWindowEnd,
} from './algorithm.ts';

export const SLIDING_WINDOW: Algorithm = {
  id: 2,
  keySuffix: ':sliding',
  isHeld: false,
  isBacklog: false,
  limitMax: countableIn,
  allowance: ({ limit, window }) => `${limit} in any ${window}`,
  span: (windowSeconds) => `${windowSeconds} s`,
  quotaSeconds: (windowSeconds) => windowSeconds,
  amountPerUnit: () => 1,
  windowAt: (at, { windowMs }) => Math.floor(at / windowMs),

  advance(state, now, { windowMs }) {
    const behind = windowsBetween(state.at, now, windowMs);
    if (behind <= 0) return { ...state, at: now };
    return { at: now, a: 0, b: behind === 1 ? state.a : 0 };
  },

  used,

  resetMs({ at, a, b }, { windowMs }) {
    if (a > 0) return untilWindowEnd(at, windowMs) + windowMs;
    return b > 0 ? untilWindowEnd(at, windowMs) : 0;
  },

  retryMs({ at, a, b }, room, { windowMs }) {
    const leftMs = untilWindowEnd(at, windowMs);
    if (a <= room) return leftMs - longestLeft(b, room - a, windowMs);
    return leftMs + windowMs - longestLeft(a, room, windowMs);
  },

  adjust(state, amount, chargedAt, { windowMs }) {
    const behind = windowsBetween(chargedAt, state.at, windowMs);
    if (behind > 1) return state;
    if (behind === 1) return { ...state, b: bounded(state.b + amount, windowMs) };
    return { ...state, a: bounded(state.a + amount, windowMs) };
  },

  lua: {
    read: `
local number, current, previous = match(get(at), '^(%d+) (%d+) (%d+)$')
local behind = floor(now / window) - (tonumber(number) or -2)
if behind == 0 then return tonumber(current), tonumber(previous) end
if behind == 1 then return 0, tonumber(current) end
return 0, 0`,
    used: 'return a + ceil(b * (window - now % window) / window)',
    unit: 'return 1',
    write: `
put(at, format('%.0f %.0f %.0f', floor(now / window), a, b), left(window) + window + 1000)`,
    adjust: `
local behind = floor(now / window) - floor(moment / window)
if behind > 1 then return a, b end
local most = min(${COUNT_MAX}, floor(${PRODUCT_MAX} / window))
if behind == 1 then return a, min(most, max(0, b + amount)) end
return min(most, max(0, a + amount)), b`,
  },
};

function bounded(count: number, windowMs: Millis): number {
  return Math.min(COUNT_MAX, Math.floor(PRODUCT_MAX / windowMs), Math.max(0, count));
}

function used({ at, a, b }: CounterState, windowMs: Millis): number {
  return a + Math.ceil((b * untilWindowEnd(at, windowMs)) / windowMs);
}

function windowsBetween(earlier: Millis, later: Millis, windowMs: Millis): number {
  return Math.floor(later / windowMs) - Math.floor(earlier / windowMs);
}

/** Returns how much of a window may be left while its count weighs at most `room`. */
function longestLeft(count: number, room: number, windowMs: Millis): Millis {
  return Math.floor((room * windowMs) / count);
}
