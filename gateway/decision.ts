/** Limits spent -> Decision. Pure: no clock, no store, no HTTP. */

import type { Spent } from '#gateway/limiter/limiter.ts';
import type { Policy } from '#gateway/policy/policy.ts';
import type { Millis, Seconds } from '#shared/clock.ts';

/** What one policy says about one request; a decision has one per policy. */
export interface Verdict {
  readonly policy: Policy;
  /** Requests left in this window after this one. */
  readonly remaining: number;
  readonly resetMs: Millis;
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
      readonly violated: readonly Verdict[];
    };

const NO_POLICIES: readonly Policy[] = [];

/** @param position of this request among those who asked together */
export function decide(spent: Spent, position: number): Decision {
  const admitted = position < spent.admitted;
  const { parts, used, resetMs, shares } = spent;
  const verdicts: Verdict[] = [];
  let shadowDenials = NO_POLICIES;
  for (let i = 0; i < parts.length; i++) {
    const policy = parts[i]?.policy;
    const before = used[i] ?? -1;
    if (policy === undefined || before < 0) continue;
    const left = (shares?.[i] ?? policy.limit) - before - (admitted ? position + 1 : spent.admitted);
    if (policy.mode === 'shadow') {
      if (admitted && left < 0) shadowDenials = [...shadowDenials, policy];
      continue;
    }
    if (!admitted && left > 0) continue;
    addVerdict(verdicts, { policy, remaining: Math.max(0, left), resetMs: resetMs[i] ?? 0 });
  }
  if (verdicts.length > 1) verdicts.sort(tightestFirst);
  return admitted ? { kind: 'allow', verdicts, shadowDenials } : { kind: 'deny', violated: verdicts };
}

/** One verdict per policy: of a credential's bucket and its address's for unproven ones, the tighter speaks. */
function addVerdict(verdicts: Verdict[], verdict: Verdict): void {
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
