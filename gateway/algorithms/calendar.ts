/**
 * Calendar windows: days, weeks and months of a time zone. A window begins at the first instant of its first day, which
 * is midnight or, where clocks skip midnight, the end of the gap. Where clocks show midnight twice, it is the first of
 * the two. So each instant is in exactly one window. The rules of the zones are those of Node's ICU.
 */
import type { Millis, Seconds } from '#shared/clock.ts';

const DAY_MS: Millis = 86_400_000;
/** Usual lengths in seconds. For a month, 31 days. */
export const UNIT_SECONDS = { day: 86_400, week: 7 * 86_400, month: 31 * 86_400 } as const;
/** The range of a JavaScript date, in both directions. */
const AT_MAX: Millis = 8.6e15;
/** Maximum number of cached windows: the current one, the next one, and earlier ones. */
const RECENT_MAX = 4;

export type CalendarUnit = keyof typeof UNIT_SECONDS;

export interface CalendarWindow {
  /** Consecutive windows have consecutive numbers. They depend on the local date only. */
  readonly number: number;
  readonly start: Millis;
  /** Start of the next window, which is the end of this one. */
  readonly end: Millis;
}

export interface Calendar {
  readonly unit: CalendarUnit;
  readonly timezone: string;
  windowAt(at: Millis): CalendarWindow;
}

export function isUnit(text: string): text is CalendarUnit {
  return Object.hasOwn(UNIT_SECONDS, text);
}

/** Returns the unit whose windows usually have this length. */
export function unitOfSeconds(seconds: Seconds): CalendarUnit {
  return seconds === UNIT_SECONDS.day ? 'day' : seconds === UNIT_SECONDS.week ? 'week' : 'month';
}

/** @param timezone a valid name of a zone */
export function calendarOf(unit: CalendarUnit, timezone: string): Calendar {
  const format = new Intl.DateTimeFormat('en', { timeZone: timezone, timeZoneName: 'longOffset' });
  const recent: CalendarWindow[] = [];
  /** Returns how far local time is ahead of UTC. */
  const offsetAt = (at: Millis): Millis => {
    const [, sign, hours, minutes, seconds = 0] =
      /GMT([+-])(\d\d):(\d\d)(?::(\d\d))?/.exec(format.format(at)) ?? [];
    if (sign === undefined) return 0;
    const ms = (Number(hours) * 3600 + Number(minutes) * 60 + Number(seconds)) * 1000;
    return sign === '-' ? -ms : ms;
  };
  /** Returns the first instant at which local time is at least midnight of that day. */
  const startOf = (number: number): Millis => {
    const midnight = firstDayOf(unit, number) * DAY_MS;
    const offsets = [offsetAt(midnight - DAY_MS), offsetAt(midnight + DAY_MS)];
    let start = midnight - Math.max(...offsets);
    let later = midnight - Math.min(...offsets);
    if (start + offsetAt(start) >= midnight) return start;
    while (later - start > 1) {
      const middle = Math.floor((start + later) / 2);
      if (middle + offsetAt(middle) >= midnight) later = middle;
      else start = middle;
    }
    return later;
  };
  const compute = (at: Millis): CalendarWindow => {
    const number = numberOf(unit, at + offsetAt(at));
    const end = startOf(number + 1);
    // Clocks that went back past midnight show the last day again.
    if (at >= end) return { number: number + 1, start: end, end: startOf(number + 2) };
    return { number, start: startOf(number), end };
  };
  return {
    unit,
    timezone,
    windowAt(at) {
      for (const window of recent) if (at >= window.start && at < window.end) return window;
      const window = compute(Math.max(-AT_MAX, Math.min(at, AT_MAX)));
      recent.unshift(window);
      if (recent.length > RECENT_MAX) recent.pop();
      return window;
    },
  };
}

function numberOf(unit: CalendarUnit, local: Millis): number {
  const day = Math.floor(local / DAY_MS);
  switch (unit) {
    case 'day':
      return day;
    case 'week':
      // 1970-01-05, day 4 of the epoch, was a Monday.
      return Math.floor((day - 4) / 7);
    case 'month': {
      const date = new Date(local);
      return (date.getUTCFullYear() - 1970) * 12 + date.getUTCMonth();
    }
    default:
      return unit satisfies never;
  }
}

/** @returns days since the epoch */
function firstDayOf(unit: CalendarUnit, number: number): number {
  switch (unit) {
    case 'day':
      return number;
    case 'week':
      return number * 7 + 4;
    case 'month':
      return Date.UTC(1970, number) / DAY_MS;
    default:
      return unit satisfies never;
  }
}
