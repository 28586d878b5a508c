/** Limits spent -> Decision. Pure: no clock, no store, no HTTP. */

import type { Part } from '#gateway/limiter/charge.ts';
import type { Spent } from '#gateway/limiter/limiter.ts';
import type { Policy } from '#gateway/policy/policy.ts';
import type { Millis, Seconds } from '#shared/clock.ts';

/** What one policy says about one request; a decision has one per policy. */
export interface Verdict {
  readonly policy: Policy;
  /** What the client is told: the policy's limit, or its own. */
  readonly quota: number;
  /** Requests left in this window after this one. */
  readonly remaining: number;
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
    addVerdict(verdicts, { policy, quota: limit, remaining: Math.max(0, left), resetMs: resetMs[i] ?? 0 });
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
    const charged = before + admitted;
    addVerdict(violations, {
      policy,
      quota: part.limit,
      remaining: 0,
      resetMs: resetMs[i] ?? 0,
      part,
      used: charged,
      limit,
    });
  }
  if (violations.length > 1) violations.sort(tightestFirst);
  return violations;
}

/** One verdict per policy: of a credential's bucket and its address's for unproven ones, the tighter speaks. */
function addVerdict<V extends Verdict>(verdicts: V[], verdict: V): void {
  for (let i = 0; i < verdicts.length; i++) {
    const other = verdicts[i];
    if (other?.policy !== verdict.policy) continue;
    if (tightestFirst(verdict, other) < 0) verdicts[i] = verdict;
    return;
  }
  verdicts.push(verdict);
}

function tightestFirst(a: Verdict, b: Verdict): number {
  return a.remaining - b.remaining || b.resetMs - a.resetMs || a.policy.index - b.policy.index;
}

/** Whole seconds after which a denied request finds room again: the largest over the denying policies, at least 1. */
export function retryAfterSeconds(violated: readonly Verdict[]): Seconds {
  let longest = 1;
  for (const { resetMs } of violated) longest = Math.max(longest, Math.ceil(resetMs / 1000));
  return longest;
}
