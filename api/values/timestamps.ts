/** Timestamps are ISO 8601 in UTC with three decimals, as text. They are stored in the form in which they are sent. */
import type { Millis } from '#shared/clock.ts';

export function toTimestamp(time: Millis): string {
  return new Date(time).toISOString();
}

/** Other years sort wrongly as text, so they are refused. */
const EARLIEST = Date.UTC(1, 0);
const LATEST = Date.UTC(10_000, 0) - 1;

const DATE = /^(\d{4}-\d{2}-\d{2})(T\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?(Z|[+-]\d{2}:?\d{2})?)?$/;

/**
 * Reads a date of a client: any ISO date, and no other format. A time without a zone is in UTC.
 *
 * @returns the same time in our own format; null if it is not a date
 */
export function readTimestamp(text: string): string | null {
  const [, day, clockTime, zone] = DATE.exec(text) ?? [];
  if (day === undefined || !isDay(day)) return null;
  // Date.parse would use the zone of this process.
  const time = Date.parse(clockTime !== undefined && zone === undefined ? `${text}Z` : text);
  return time >= EARLIEST && time <= LATEST ? toTimestamp(time) : null;
}

/** @param text `YYYY-MM-DD`. Date moves the days 29 to 31 of shorter months into the next month. */
function isDay(text: string): boolean {
  const date = new Date(`${text}T00:00:00Z`);
  return !Number.isNaN(date.getTime()) && date.getUTCDate() === Number(text.slice(-2));
}
