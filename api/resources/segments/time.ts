/** Points in time and time spans in filters, all in UTC. Pure. */
import { readTimestamp } from '#api/values/timestamps.ts';
import type { Millis } from '#shared/clock.ts';

export const spanUnits = ['days', 'weeks', 'months', 'years'] as const;
type SpanUnit = (typeof spanUnits)[number];

export interface Span {
  readonly amount: number;
  readonly unit: SpanUnit;
}

const DAY: Millis = 86_400_000;

/** A period from its first moment to the first moment after it. A date is a whole day, a time is a single moment. */
export interface Period {
  readonly start: Millis;
  readonly end: Millis;
}

/** @returns null if the text is not an ISO 8601 date */
export function readPeriod(text: string): Period | null {
  const start = readTime(text);
  if (start === null) return null;
  return { start, end: text.includes('T') ? start + 1 : start + DAY };
}

/** @returns null if the text is not an ISO 8601 date; a date without a time is its first moment */
export function readTime(text: string): Millis | null {
  const timestamp = readTimestamp(text);
  return timestamp === null ? null : Date.parse(timestamp);
}

export function dayOf(time: Millis): number {
  return Math.floor(time / DAY);
}

/** Returns the time that is one span before now. A month before March 31 is the last day of February. */
export function before(now: Millis, { amount, unit }: Span): Millis {
  switch (unit) {
    case 'days':
      return now - amount * DAY;
    case 'weeks':
      return now - amount * 7 * DAY;
    case 'months':
      return monthsBefore(now, amount);
    case 'years':
      return monthsBefore(now, amount * 12);
  }
}

function monthsBefore(now: Millis, months: number): Millis {
  const date = new Date(now);
  const day = date.getUTCDate();
  date.setUTCDate(1);
  date.setUTCMonth(date.getUTCMonth() - months);
  const lastDay = new Date(Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1, 0)).getUTCDate();
  date.setUTCDate(Math.min(day, lastDay));
  return date.getTime();
}
