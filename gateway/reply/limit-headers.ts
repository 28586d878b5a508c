/** Formats the limit headers of a reply, as alternating names and values. */
import { ALGORITHMS } from '#gateway/algorithms/table.ts';
import type { Verdict } from '#gateway/limiter/limiter.ts';
import { countsBytes, type Policy } from '#gateway/policy/policy.ts';

interface PolicyText {
  readonly limit: string;
  /** An item of RateLimit-Policy (draft-ietf-httpapi-ratelimit-headers). */
  readonly quota: string;
}

/** Dropped with the policies, when a reload replaces them. */
const texts = new WeakMap<Policy, PolicyText>();

function textOf(verdict: Verdict): PolicyText {
  const { policy, limit } = verdict;
  if (limit !== policy.limit) return newText(verdict);
  let text = texts.get(policy);
  if (text === undefined) {
    text = newText(verdict);
    texts.set(policy, text);
  }
  return text;
}

function newText(verdict: Verdict): PolicyText {
  const { policy, capacity, limit } = verdict;
  const item = `"${policy.name}";q=${capacity};`;
  const seconds = ALGORITHMS[policy.algorithm].quotaSeconds(policy.windowSeconds, capacity, limit);
  if (seconds === null) return { limit: String(capacity), quota: `${item}qu="concurrent-requests"` };
  const unit = countsBytes(policy) ? 'qu="content-bytes";' : '';
  return { limit: String(capacity), quota: `${item}${unit}w=${seconds}` };
}

/**
 * Returns `x-ratelimit-*` for the tightest policy, and the IETF pair for all policies. Policies with `headers: off` are
 * left out.
 *
 * @param verdicts one per policy, the tightest first
 */
export function limitHeaders(verdicts: readonly Verdict[]): string[] {
  let tightest: Verdict | undefined;
  let policies = '';
  let limits = '';
  for (const verdict of verdicts) {
    const { policy, remaining, resetMs } = verdict;
    if (!policy.headers) continue;
    const { quota } = textOf(verdict);
    const state = `"${policy.name}";r=${remaining};t=${Math.ceil(resetMs / 1000)}`;
    if (tightest === undefined) {
      tightest = verdict;
      policies = quota;
      limits = state;
    } else {
      policies += `, ${quota}`;
      limits += `, ${state}`;
    }
  }
  if (tightest === undefined) return [];
  return [
    'x-ratelimit-limit',
    textOf(tightest).limit,
    'x-ratelimit-remaining',
    String(tightest.remaining),
    'x-ratelimit-reset',
    String(Math.ceil(tightest.resetMs / 1000)),
    'RateLimit-Policy',
    policies,
    'RateLimit',
    limits,
  ];
}
