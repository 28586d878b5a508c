/** Regulars are clients that were here before. */
import type { Millis } from '#shared/clock.ts';

/** A client becomes a regular by good replies on enough different days. */
export interface VisitRule {
  /** Number of different days, at least 2. */
  readonly visits: number;
  /** The days lie within so many days, of which the last one is today; at most HISTORY_DAYS. */
  readonly days: number;
  /** Maximum number of new clients per day whose first visit is stored. */
  readonly newPerDay: number;
}

/** Number of days that a history can hold. */
export const HISTORY_DAYS = 31;
export const DAY_MS: Millis = 86_400_000;
