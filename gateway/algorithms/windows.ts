/**
 * Windows that begin anew: those of a fixed length, aligned to the epoch, and those of a calendar (calendar.ts). `a` counts
 * the units of the current window.
 *
 * In Redis the value is the number of the window (modulo 2^20) times 2^32 plus the count. So a value of an earlier window is
 * recognised even if Redis has not expired the key in that millisecond, and one INCRBY charges it. The expiry only frees
 * memory, and is a second later than the end of the window. From Redis 7.2 on, expiry is compared with the time at which the
 * script began, so a counter could otherwise disappear before its window ends.
 *
 * The script knows no time zones. So for a calendar each call passes the bounds of three windows: the one at the gateway's
 * estimate of the store's time, the one before and the one after. The store's clock decides which of them applies. The
 * result is exact as long as the estimate is wrong by less than a window. Numbers are computed from local dates. If
 * processes have different versions of a zone's rules, they disagree for about an hour. Then the later window counts, and
 * they do not reset each other's counters until the window ends. The same holds if the store's clock goes back.
 */

import type { Millis } from '#shared/clock.ts';
import { type Algorithm, type AlgorithmLua, COUNT_MAX, type Rule } from './algorithm.ts';
import { type Calendar, type CalendarWindow, unitOfSeconds } from './calendar.ts';

type Windows = Pick<Rule, 'windowMs' | 'calendar'>;

function windowOf(at: Millis, { windowMs, calendar }: Windows): CalendarWindow {
  if (calendar !== null) return calendar.windowAt(at);
  const start = at - (at % windowMs);
  return { number: start / windowMs, start, end: start + windowMs };
}

const WINDOWS: Omit<Algorithm, 'id' | 'keySuffix' | 'allowance' | 'span' | 'lua'> = {
  isHeld: false,
  isBacklog: false,
  limitMax: () => Number.POSITIVE_INFINITY,
  quotaSeconds: (windowSeconds) => windowSeconds,
  amountPerUnit: () => 1,
  windowAt: (at, windows) => windowOf(at, windows).number,

  advance(state, now, rule) {
    return { at: now, a: state.at >= windowOf(now, rule).start ? state.a : 0, b: 0 };
  },

  used: ({ a }) => a,
  resetMs: ({ at }, rule) => windowOf(at, rule).end - at,
  retryMs: ({ at }, _room, rule) => windowOf(at, rule).end - at,

  adjust(state, amount, chargedAt, rule) {
    const isSame = chargedAt >= windowOf(state.at, rule).start;
    return isSame ? { ...state, a: Math.min(COUNT_MAX, Math.max(0, state.a + amount)) } : state;
  },
};

/** @param number returns Lua for the number of the window at a time */
function windowsLua(number: (time: 'now' | 'moment') => string): AlgorithmLua {
  return {
    // A number that is much higher is one of before the numbers began again.
    read: `
local count = (tonumber(get(at)) or 0) - ${number('now')} % 1048576 * 4294967296
if count >= 0 and count < 2251799813685248 then return count % 4294967296, 0 end
return 0, 0`,
    used: 'return a',
    unit: 'return 1',
    write: `
local value = a > added and pcall('INCRBY', keys[at], added)
if type(value) == 'number' then fresh[keys[at]] = value else
  put(at, ${number('now')} % 1048576 * 4294967296 + a, left(window) + 1000)
end`,
    adjust: `
if ${number('moment')} < ${number('now')} then return a, b end
return min(${COUNT_MAX}, max(0, a + amount)), b`,
  };
}

export const FIXED_WINDOW: Algorithm = {
  ...WINDOWS,
  id: 1,
  keySuffix: '',
  allowance: ({ limit, window }) => `${limit} in ${window}`,
  span: (windowSeconds) => `${windowSeconds} s`,
  lua: windowsLua((time) => `(${time} - ${time} % window) / window`),
};

export const CALENDAR_WINDOW: Algorithm = {
  ...WINDOWS,
  id: 5,
  keySuffix: ':calendar',
  allowance: ({ limit, window, timezone }) => `${limit} in ${window} (${timezone})`,
  span: (windowSeconds) => `a calendar ${unitOfSeconds(windowSeconds)}`,
  lua: windowsLua((time) => {
    const place = [2, 3, 4].map((i) => `${time} < window[${i}] and ${i - 3}`);
    return `(window[1] + (${place.join(' or ')} or 2))`;
  }),
};

/** @returns the number of the first of three windows, its start, and the ends of all three */
export function scriptWindow(calendar: Calendar, storeNow: Millis): readonly number[] {
  const { number, start, end } = calendar.windowAt(storeNow);
  return [number - 1, calendar.windowAt(start - 1).start, start, end, calendar.windowAt(end).end];
}
