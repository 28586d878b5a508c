/** Regulars are clients that were here before. Policies with `newcomers` let them in first. */
import type { Identifier } from '#gateway/identity/identifier.ts';
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

export interface Regulars extends VisitRule {
  /** Their proven keys are regulars at once. */
  readonly keys: readonly Identifier[];
  /** Whether this address never becomes a regular. null if each can. */
  readonly never: ((address: readonly number[]) => boolean) | null;
  /**
   * The policies act from this time, because nobody can be a regular before. `unknown`: it depends on a store that was
   * not reached yet. null if they act.
   */
  readonly actsFrom: Millis | 'unknown' | null;
}

/** Number of days that a history can hold. */
export const HISTORY_DAYS = 31;
export const DAY_MS: Millis = 86_400_000;
