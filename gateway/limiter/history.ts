/**
 * The days on which a client had good replies, from which regulars are known (gateway/policy/regulars.ts). A day is a UTC
 * day of the store's clock. Pure; visits.ts does the same in Redis.
 */
import { DAY_MS, HISTORY_DAYS, type VisitRule } from '#gateway/policy/regulars.ts';
import type { Millis } from '#shared/clock.ts';

export function dayOf(at: Millis): number {
  return Math.floor(at / DAY_MS);
}

/** The days of one client. */
export interface History {
  readonly last: number;
  /** Bit n stands for the day n days before the last one. */
  readonly days: number;
}

/** Adds a day. @param history null if there is none */
export function visitedOn(day: number, history: History | null): History {
  // A day that is far ahead is from a clock that was wrong.
  if (history === null || Math.abs(day - history.last) >= HISTORY_DAYS) return { last: day, days: 1 };
  const { last, days } = history;
  if (day > last) return { last: day, days: ((days * 2 ** (day - last)) % 2 ** HISTORY_DAYS) + 1 };
  const bit = 2 ** (last - day);
  // A gateway whose clock is slow may report a day late.
  return Math.floor(days / bit) % 2 === 0 ? { last, days: days + bit } : history;
}

/** @returns the days, in their order */
export function daysOf({ last, days }: History): number[] {
  return Array.from({ length: HISTORY_DAYS }, (_, i) => HISTORY_DAYS - 1 - i).flatMap((ago) =>
    Math.floor(days / 2 ** ago) % 2 === 1 ? last - ago : [],
  );
}

/** @returns the day from which the client is no regular any more; null if it is none now */
export function regularUntil({ last, days }: History, { visits, days: within }: VisitRule): number | null {
  let found = 0;
  for (let ago = 0; ago < within; ago++)
    if (Math.floor(days / 2 ** ago) % 2 === 1 && ++found === visits) return last - ago + within;
  return null;
}
