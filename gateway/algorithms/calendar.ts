/**
 * Calendar windows: days, weeks and months of a time zone. A window begins at the first instant of its first day, which
 * is midnight or, where clocks skip midnight, the end of the gap. Where clocks show midnight twice, it is the first of
 * the two. So each instant is in exactly one window. Temporal knows the zones.
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
  const recent: CalendarWindow[] = [];
  const startOf = (first: Temporal.PlainDate): Millis => first.toZonedDateTime(timezone).epochMilliseconds;
  const beginningOn = (first: Temporal.PlainDate): CalendarWindow => ({
    number: numberOf(unit, first),
    start: startOf(first),
    end: startOf(first.add({ [`${unit}s`]: 1 })),
  });
  const compute = (at: Millis): CalendarWindow => {
    const instant = Temporal.Instant.fromEpochMilliseconds(Math.floor(at));
    const first = firstDayOf(unit, instant.toZonedDateTimeISO(timezone).toPlainDate());
    const window = beginningOn(first);
    // Clocks that went back past midnight show the last day again.
    return at < window.end ? window : beginningOn(first.add({ [`${unit}s`]: 1 }));
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

function firstDayOf(unit: CalendarUnit, date: Temporal.PlainDate): Temporal.PlainDate {
  if (unit === 'week') return date.subtract({ days: date.dayOfWeek - 1 });
  return unit === 'month' ? date.with({ day: 1 }) : date;
}

function numberOf(unit: CalendarUnit, { year, month, day }: Temporal.PlainDate): number {
  if (unit === 'month') return (year - 1970) * 12 + month - 1;
  const days = Date.UTC(year, month - 1, day) / DAY_MS;
  // 1970-01-05, day 4 of the epoch, was a Monday.
  return unit === 'week' ? (days - 4) / 7 : days;
}
