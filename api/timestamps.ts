/** Timestamps are ISO 8601 in UTC with three decimals, as text: what is stored is what is sent. */
import type { Millis } from '#shared/clock.ts';

export function toTimestamp(time: Millis): string {
  return new Date(time).toISOString();
}

/** Years beyond these sort wrongly as text, so they are refused. */
const EARLIEST = Date.UTC(1, 0);
const LATEST = Date.UTC(10_000, 0) - 1;

/**
 * Reads what a client may send: any ISO date text, and nothing looser.
 *
 * @returns the same point in our own form; null when it is not a date
 */
export function readTimestamp(text: string): string | null {
  if (!/^\d{4}-\d{2}-\d{2}(T\d{2}:\d{2}(:\d{2}(\.\d{1,9})?)?(Z|[+-]\d{2}:?\d{2})?)?$/.test(text)) return null;
  const time = Date.parse(text);
  return time >= EARLIEST && time <= LATEST ? toTimestamp(time) : null;
}
