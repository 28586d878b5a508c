/** Turns the result of a charge into a decision. Pure: no clock, no store, no HTTP. */

import { ALGORITHMS } from '#gateway/algorithms/table.ts';
import type { Policy } from '#gateway/policy/policy.ts';
import type { Spent, Verdict, Violation } from './limiter.ts';

export type Decision =
  | {
      readonly kind: 'allow';
      /** The enforced policies, the tightest first. */
      readonly verdicts: readonly Verdict[];
      /** Policies in shadow mode that would have denied. */
      readonly shadowDenials: readonly Policy[];
      /** Policies that mark the request because it is over their limit. */
      readonly marks: readonly Policy[];
    }
  | {
      readonly kind: 'deny';
      /** The exhausted policies, the one that resets last first. */
      readonly violated: readonly Violation[];
    };

const NO_POLICIES: readonly Policy[] = [];

/** @param position of this request in its batch */
export function decide({ buckets, states, admitted }: Spent, position: number): Decision {
  const isAdmitted = position < admitted;
  const before = isAdmitted ? position : admitted;
  const verdicts: Verdict[] = [];
  const violated: Violation[] = [];
  let shadowDenials = NO_POLICIES;
  let marks = NO_POLICIES;
  for (let i = 0; i < buckets.length; i++) {
    const bucket = buckets[i];
    const state = states[i] ?? null;
    if (bucket === undefined || state === null) continue;
    const { policy, cost, capacity, limit } = bucket;
    const charged = state.unitsOf(before, cost);
    const used = state.used + charged;
    const left = state.leftAfter(before + 1, cost);
    if (policy.mode !== 'enforce') {
      if (left < 0 && policy.mode === 'mark') marks = withPolicy(marks, policy);
      else if (left < 0) shadowDenials = withPolicy(shadowDenials, policy);
    } else if (isAdmitted) {
      const resetMs = state.resetMs(state.unitsOf(before + 1, cost));
      addVerdict(verdicts, { policy, capacity, limit, remaining: Math.max(0, left), resetMs }, tightestFirst);
    } else if (left < 0) {
      const retryMs = state.retryMs(charged, cost);
      const violation = {
        policy,
        capacity,
        limit,
        remaining: Math.max(0, left + cost),
        // A cost above this process's share is for the store to decide.
        resetMs: retryMs === Number.POSITIVE_INFINITY ? state.resetMs(charged) : retryMs,
        bucket,
        used,
        share: state.capacity,
        canNeverPass: cost > capacity,
      };
      addVerdict(violated, violation, longestFirst);
    }
  }
  if (!isAdmitted) return { kind: 'deny', violated: violated.sort(longestFirst) };
  if (verdicts.length > 1) verdicts.sort(inFlightLast);
  return { kind: 'allow', verdicts, shadowDenials, marks };
}

/** A credential's bucket and that of its address belong to the same policy. */
function withPolicy(policies: readonly Policy[], policy: Policy): readonly Policy[] {
  return policies.includes(policy) ? policies : [...policies, policy];
}

/** Adds one verdict per policy. Of a credential's bucket and that of its address, the tighter one counts. */
function addVerdict<V extends Verdict>(verdicts: V[], verdict: V, order: (a: V, b: V) => number): void {
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

/**
 * Sorts requests in flight last. Clients know how many of these they have; the rest of a window tells them how fast to
 * go on.
 */
function inFlightLast(a: Verdict, b: Verdict): number {
  return Number(isInFlight(a)) - Number(isInFlight(b)) || tightestFirst(a, b);
}

function isInFlight({ policy }: Verdict): boolean {
  return ALGORITHMS[policy.algorithm].isHeld;
}

function longestFirst(a: Violation, b: Violation): number {
  return Number(b.canNeverPass) - Number(a.canNeverPass) || b.resetMs - a.resetMs || tightestFirst(a, b);
}
