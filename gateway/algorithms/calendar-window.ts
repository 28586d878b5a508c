/**
 * Windows of a calendar (calendar.ts). `a` counts the units of the current window, as for fixed windows.
 *
 * The script knows no time zones. So each call passes the bounds of three windows: the one at the gateway's estimate of
 * the store's time, the one before and the one after. The store's clock decides which of them applies. The result is
 * exact as long as the estimate is wrong by less than a window.
 *
 * In Redis the value is the number of the window times 2^32 plus the count. Numbers are computed from local dates. If
 * processes have different versions of a zone's rules, they disagree for about an hour. Then the later window counts,
 * and they do not reset each other's counters until the window ends.
 */

import type { Millis } from '#shared/clock.ts';
import { type Algorithm, COUNT_MAX, type Rule } from './algorithm.ts';
import { type Calendar, type CalendarWindow, unitOfSeconds } from './calendar.ts';

/** Lua: the number of the window that contains a time. */
function number(moment: 'now' | 'moment'): string {
  const place = [2, 3, 4].map((i) => `${moment} < window[${i}] and ${i - 3}`);
  return `(window[1] + (${place.join(' or ')} or 2))`;
}

export const CALENDAR_WINDOW: Algorithm = {
  id: 5,
  keySuffix: ':calendar',
  isHeld: false,
  isBacklog: false,
  limitMax: () => Number.POSITIVE_INFINITY,
  allowance: ({ limit, window, timezone }) => `${limit} in ${window} (${timezone})`,
  span: (windowSeconds) => `a calendar ${unitOfSeconds(windowSeconds)}`,
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

  lua: {
    read: `
local count = (tonumber(get(at)) or 0) - ${number('now')} * 4294967296
if count >= 0 and count < 9007199254740992 then return count % 4294967296, 0 end
return 0, 0`,
    used: 'return a',
    unit: 'return 1',
    write: `
local value = a > added and pcall('INCRBY', keys[at], added)
if type(value) == 'number' then fresh[keys[at]] = value else
  put(at, ${number('now')} * 4294967296 + a, left(window) + 1000)
end`,
    adjust: `
if ${number('moment')} < ${number('now')} then return a, b end
return min(${COUNT_MAX}, max(0, a + amount)), b`,
  },
};

/** @returns the number of the first of three windows, its start, and the ends of all three */
export function scriptWindow(calendar: Calendar, storeNow: Millis): readonly number[] {
  const { number, start, end } = calendar.windowAt(storeNow);
  return [number - 1, calendar.windowAt(start - 1).start, start, end, calendar.windowAt(end).end];
}

function windowOf(at: Millis, { calendar }: Pick<Rule, 'calendar'>): CalendarWindow {
  if (calendar === null) throw new Error('a calendar window has a calendar');
  return calendar.windowAt(at);
}
