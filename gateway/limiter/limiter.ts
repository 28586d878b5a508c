/**
 * Counting, and nothing else.
 *
 * A `Limiter` decides charges (charge.ts): each in one atomic step, on the store's own clock. Most are plain: fixed
 * windows aligned to the epoch and nothing else. What other algorithms count goes a way of its own, so that plain charges
 * cost no more for it. A denied request is a result, not an error, and is charged nowhere.
 *
 * Requests of one turn of the event loop with the same charge are decided together: `n` of them ask once, `admitted`
 * says how many of the n passed, and the first ones in order of arrival are those. The decisions are the same as those
 * of n single calls in a row.
 */

import type { Identity } from '#gateway/identity/digest.ts';
import type { Policy } from '#gateway/policy/policy.ts';
import type { Millis } from '#shared/clock.ts';
import type { Charge, Part } from './charge.ts';
import type { Level } from './level.ts';

/** What came of a charge, shared by all that asked together. */
export interface Spent {
  readonly parts: readonly Part[];
  /** The first so many of those who asked are admitted. */
  readonly admitted: number;
  /** Per part: what was charged before the first of those who asked; -1: skipped, as the credential is proven. */
  readonly used: readonly number[];
  /** Per part: until its window ends, on the store's clock; empty where there are levels. */
  readonly resetMs: readonly Millis[];
  /** Per part: what applies instead of the policies' limits, this process's share; null while the store decides. */
  readonly shares: readonly number[] | null;
  /** Per part: what it held before the first of those who asked; null of a charge that is plain, and of a part that was skipped. */
  readonly levels: readonly (Level | null)[] | null;
  /** Per part: when it was charged, on the store's clock; null of a charge that is plain. */
  readonly chargedAt: readonly Millis[] | null;
  /** What the leases of those admitted are called (leases.ts); null: they hold none. */
  readonly leases: string | null;
}

/** An exhausted counter that this process knows of. */
export interface Exhausted {
  readonly part: Part;
  /** What is known to be used. */
  readonly used: number;
  /** When there is surely room again. */
  readonly resetMs: Millis;
}

/** What a part of an admitted request was charged, and whether it counts after all. */
export interface Outcome {
  readonly part: Part;
  /** On the store's clock. */
  readonly chargedAt: Millis;
  readonly counts: boolean;
}

/** Who asked for a charge. */
export interface LimitListener {
  /** @param position among those who asked together, from 0: admitted when below `spent.admitted` */
  onSpent(spent: Spent, position: number): void;
  /** The store is away and a policy says: deny. */
  onStoreUnavailable(): void;
}

export interface Limiter {
  /** The parts of a charge that this process knows to be exhausted; null when the charge has to be decided. */
  knownExhausted(charge: Charge): readonly Exhausted[] | null;
  /** Answers the listener exactly once, now or later, while the store may be slow. Never throws. */
  spend(charge: Charge, listener: LimitListener): void;
  /** What came of an admitted request, told once for each. @param isLocal it was decided without the store */
  conclude(outcomes: readonly Outcome[], isLocal: boolean): void;
  /** An admitted request is no longer in flight: what it held is free. Told once for each. @param position among those who asked together */
  release(spent: Spent, position: number): void;
  /** Does this process know it to be proven? If not, the store is asked, and an unproven one is charged to its address too. */
  isProven(credential: Identity): boolean;
  /** This process saw it work within the last hour, so another success need not be reported. */
  isProofFresh(credential: Identity): boolean;
  /** Remembers, for all replicas, that this credential has worked. */
  prove(credential: Identity): void;
  /** The credential was refused: it is proven no more. */
  withdraw(credential: Identity): void;
  close(): Promise<void>;
}

/** How long a credential counts as proven after it last worked. */
export const PROVEN_MS: Millis = 30 * 86_400_000;
/** How long this process believes in a proof before it asks the store again, and before it reports the next success. */
export const PROVEN_LOCALLY_MS: Millis = 3_600_000;

/**
 * One replica's part of a limit; those of all replicas add up to it. Which of them get the odd ones differs between
 * policies, so that no replica is without a share everywhere.
 *
 * @param rank from 0
 * @param capacity the policy's unless an override says another
 */
export function shareOf(policy: Policy, rank: number, replicas: number, capacity = policy.capacity): number {
  const { index } = policy;
  if (replicas <= 1) return capacity;
  const place = (rank + index) % replicas;
  return Math.floor(capacity / replicas) + (place < capacity % replicas ? 1 : 0);
}
