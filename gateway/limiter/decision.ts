/** Limits spent -> Decision. Pure: no clock, no store, no HTTP. */

import type { Policy } from '#gateway/policy/policy.ts';
import type { Millis, Seconds } from '#shared/clock.ts';
import type { Part } from './charge.ts';
import type { Level } from './level.ts';
import type { Spent } from './limiter.ts';

/** What one policy says about one request; a decision has one per policy. */
export interface Verdict {
  readonly policy: Policy;
  /** What the client is told, the policy's or its own: the most that it can use at once. */
  readonly quota: number;
  /** And in a window: the same, but of a token bucket with a burst. */
  readonly perWindow: number;
  /** What is left for other requests after this one. */
  readonly remaining: number;
  /** Of what admits: until all of it is available again. Of what denies: until there is room for such a request. */
  readonly resetMs: Millis;
}

/** What an exhausted policy says. */
export interface Violation extends Verdict {
  /** Which of its counters is exhausted. */
  readonly part: Part;
  /** What was charged before this request. */
  readonly used: number;
  /** The quota, or this process's share of it. */
  readonly limit: number;
  /** The request costs more than the whole limit: no waiting helps. */
  readonly canNeverPass: boolean;
}

export type Decision =
  | {
      readonly kind: 'allow';
      /** The enforced policies, the tightest first. */
      readonly verdicts: readonly Verdict[];
      /** Policies in shadow mode that would have denied. */
      readonly shadowDenials: readonly Policy[];
    }
  | {
      readonly kind: 'deny';
      /** The exhausted policies, the one that resets last first. */
      readonly violated: readonly Violation[];
    };

const NO_POLICIES: readonly Policy[] = [];

/** @param position of this request among those who asked together */
export function decide(spent: Spent, position: number): Decision {
  if (spent.levels !== null) return decideByLevels(spent, spent.levels, position);
  const admitted = position < spent.admitted;
  if (!admitted) return { kind: 'deny', violated: violationsOf(spent) };
  const { parts, used, resetMs, shares } = spent;
  const verdicts: Verdict[] = [];
  let shadowDenials = NO_POLICIES;
  for (let i = 0; i < parts.length; i++) {
    const part = parts[i];
    const before = used[i] ?? -1;
    if (part === undefined || before < 0) continue;
    const { policy, limit } = part;
    const left = (shares?.[i] ?? limit) - before - (position + 1);
    if (policy.mode === 'shadow') {
      if (left < 0) shadowDenials = [...shadowDenials, policy];
      continue;
    }
    const remaining = Math.max(0, left);
    addVerdict(verdicts, { policy, quota: limit, perWindow: limit, remaining, resetMs: resetMs[i] ?? 0 });
  }
  if (verdicts.length > 1) verdicts.sort(tightestFirst);
  return { kind: 'allow', verdicts, shadowDenials };
}

/** Of those who were not admitted. */
function violationsOf({ parts, used, resetMs, shares, admitted }: Spent): readonly Violation[] {
  const violations: Violation[] = [];
  for (let i = 0; i < parts.length; i++) {
    const part = parts[i];
    const before = used[i] ?? -1;
    if (part === undefined || before < 0 || part.policy.mode === 'shadow') continue;
    const { policy } = part;
    const limit = shares?.[i] ?? part.limit;
    if (limit - before > admitted) continue;
    addVerdict(violations, {
      policy,
      quota: part.limit,
      perWindow: part.limit,
      remaining: 0,
      resetMs: resetMs[i] ?? 0,
      part,
      used: before + admitted,
      limit,
      canNeverPass: false,
    });
  }
  if (violations.length > 1) violations.sort(tightestFirst);
  return violations;
}

/** The same for charges that are not plain. */
function decideByLevels(
  { parts, admitted }: Spent,
  levels: readonly (Level | null)[],
  position: number,
): Decision {
  const verdicts: Verdict[] = [];
  const violated: Violation[] = [];
  const shadowDenials: Policy[] = [];
  const before = Math.min(position, admitted);
  for (const [i, part] of parts.entries()) {
    const level = levels[i];
    if (level == null) continue;
    const { policy, cost, capacity: quota, limit: perWindow } = part;
    const charged = before * cost;
    const used = level.used + charged;
    const left = level.capacity - used - cost;
    if (policy.mode === 'shadow') {
      if (left < 0) shadowDenials.push(policy);
    } else if (position < admitted)
      addVerdict(verdicts, {
        policy,
        quota,
        perWindow,
        remaining: Math.max(0, left),
        resetMs: level.resetMs(charged + cost),
      });
    else if (left < 0) {
      const retryMs = level.retryMs(charged, cost);
      const violation = {
        policy,
        quota,
        perWindow,
        remaining: Math.max(0, left + cost),
        // More than a share can do is for the store to say.
        resetMs: retryMs === Number.POSITIVE_INFINITY ? level.resetMs(charged) : retryMs,
        part,
        used,
        limit: level.capacity,
        canNeverPass: cost > quota,
      };
      addVerdict(violated, violation, longestFirst);
    }
  }
  if (position >= admitted) return { kind: 'deny', violated: violated.sort(longestFirst) };
  return { kind: 'allow', verdicts: verdicts.sort(inFlightLast), shadowDenials };
}

/** One verdict per policy: of a credential's bucket and its address's for unproven ones, the tighter speaks. */
function addVerdict<V extends Verdict>(
  verdicts: V[],
  verdict: V,
  order: (a: V, b: V) => number = tightestFirst,
): void {
  for (let i = 0; i < verdicts.length; i++) {
    const other = verdicts[i];
    if (other?.policy !== verdict.policy) continue;
    if (order(verdict, other) < 0) verdicts[i] = verdict;
    return;
  }
  verdicts.push(verdict);
}

function tightestFirst(a: Verdict, b: Verdict): number {
  return a.remaining - b.remaining || b.resetMs - a.resetMs || a.policy.index - b.policy.index;
}

/** What is left of a window tells a client how fast to go on; how many are in flight it knows itself. */
function inFlightLast(a: Verdict, b: Verdict): number {
  return Number(isInFlight(a)) - Number(isInFlight(b)) || tightestFirst(a, b);
}

function isInFlight({ policy }: Verdict): boolean {
  return policy.algorithm === 'concurrency';
}

function longestFirst(a: Violation, b: Violation): number {
  return Number(b.canNeverPass) - Number(a.canNeverPass) || b.resetMs - a.resetMs || tightestFirst(a, b);
}

/** Whole seconds after which a denied request finds room again: the largest over the denying policies, at least 1. */
export function retryAfterSeconds(violated: readonly Verdict[]): Seconds {
  let longest = 1;
  for (const { resetMs } of violated) longest = Math.max(longest, Math.ceil(resetMs / 1000));
  return longest;
}
