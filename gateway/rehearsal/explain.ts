/** One request, explained: every policy of the file, whether it applies, why not, and what its counter says. */

import type { Part } from '#gateway/limiter/charge.ts';
import { allowanceOf } from '#gateway/policy/allowance.ts';
import type { Counter } from '#gateway/policy/counter.ts';
import { exclusionOf, mismatchOf } from '#gateway/policy/mismatch.ts';
import type { Algorithm, Policy, PolicySet } from '#gateway/policy/policy.ts';
import { withoutSegmentParameters } from '#gateway/policy/target.ts';
import { recordOf } from '#gateway/reply/own-reply.ts';
import type { Seconds } from '#shared/clock.ts';
import type { DecidedRequest, Rehearsal, RehearsedRequest } from './rehearsal.ts';

export interface Explanation {
  readonly decision: 'allow' | 'deny' | 'uncovered' | 'malformed';
  /** Canonical; as sent where it is malformed. */
  readonly path: string;
  /** What the gateway answers; null where the application does. */
  readonly status: number | null;
  /** What the gateway adds to the reply, or answers. */
  readonly headers: Readonly<Record<string, string>>;
  /** Why it is malformed, excluded or denied; null when there is nothing to say. */
  readonly reason: string | null;
  /** In the order of the file. */
  readonly policies: readonly ExplainedPolicy[];
}

export interface ExplainedPolicy {
  readonly name: string;
  readonly line: number;
  readonly matched: boolean;
  /** Why it applies or not. */
  readonly reason: string;
  /** Digest of who is counted; null where nobody is. */
  readonly identity: string | null;
  readonly bucket: string;
  /** The most that can be used at once. */
  readonly limit: number;
  readonly windowSeconds: Seconds;
  readonly algorithm: Algorithm;
  /** In this window, before this request; null where nobody is counted. */
  readonly used: number | null;
  /** What the request takes; null where nobody is counted. */
  readonly cost: number | null;
  readonly remaining: number | null;
}

/** Puts live counts into a rehearsal, where there are any, before it is asked. */
export type Seed = (rehearsal: Rehearsal, request: RehearsedRequest) => Promise<void>;

export async function explain(
  set: PolicySet,
  rehearsal: Rehearsal,
  request: RehearsedRequest,
  seed: Seed = async () => undefined,
): Promise<Explanation> {
  await seed(rehearsal, request);
  const asked = rehearsal.ask(request);
  if (asked.kind === 'malformed') {
    return {
      decision: 'malformed',
      path: request.target,
      status: asked.status,
      headers: {},
      reason: asked.reason,
      policies: [],
    };
  }
  const decided = asked.kind === 'uncovered' ? null : asked;
  const path = asked.path;
  const excluded = exclusionOf(set.exclude, request.method, path);
  const policies = set.policies.map((policy) =>
    explainPolicy(policy, request, excluded?.text ?? null, decided, path),
  );
  return {
    decision: asked.kind,
    path,
    status: asked.kind === 'deny' ? 429 : null,
    headers: recordOf(decided?.headers ?? []),
    reason: reasonOf(decided, excluded?.text ?? null),
    policies,
  };
}

function reasonOf(decided: DecidedRequest | null, excluded: string | null): string | null {
  if (excluded !== null) return `exclude has "${excluded}": no policy applies`;
  if (decided === null) return 'no policy applies';
  if (decided.kind === 'allow') return null;
  return decided.violated
    .map(({ policy }) => `${policy.name} (line ${policy.line}) allows ${allowanceOf(policy, ' s')}`)
    .join('; ');
}

function explainPolicy(
  policy: Policy,
  { method }: RehearsedRequest,
  excluded: string | null,
  decided: DecidedRequest | null,
  path: string,
): ExplainedPolicy {
  const { name, line, bucket, capacity: limit, windowSeconds, algorithm } = policy;
  const base = { name, line, bucket, limit, windowSeconds, algorithm };
  const nobody = { ...base, matched: false, identity: null, used: null, cost: null, remaining: null };
  const mismatch = routeMismatch(policy, method, path);
  if (mismatch !== null) return { ...nobody, reason: mismatch };
  if (excluded !== null) return { ...nobody, reason: `exclude has "${excluded}"` };
  const part = partOf(policy, decided, false);
  if (decided === null || part === null)
    return { ...nobody, reason: `the request presents no ${policy.identifier.name}` };
  const unproven = partOf(policy, decided, true);
  const used = usedBy(decided, part);
  const usedUnproven = unproven === null ? -1 : usedBy(decided, unproven);
  return {
    ...base,
    matched: true,
    reason: reasonToCount(policy, usedUnproven, part.cost),
    identity: part.identity.digest,
    used,
    cost: part.cost,
    remaining: Math.max(0, limit - Math.max(used, usedUnproven)),
  };
}

function reasonToCount(
  { identifier, capacity, mode, count }: Policy,
  usedUnproven: number,
  cost: number,
): string {
  const takes = cost === 1 ? '' : `, it takes ${cost}`;
  const who =
    identifier.kind === 'address' ? 'the client address is counted' : `its ${identifier.name} is counted`;
  const only = count === 'request' ? '' : `; only each ${count} counts`;
  const shadow = mode === 'shadow' ? `${only}; shadow: it never denies` : only;
  return usedUnproven < 0
    ? `route matches, ${who}${takes}${shadow}`
    : `route matches, ${who}${takes}; not known to work yet, so its address is counted too (${usedUnproven} of ${capacity} used)${shadow}`;
}

function routeMismatch({ route }: Policy, method: string, path: string): string | null {
  const mismatch = mismatchOf(route, method, path);
  const stripped = mismatch === null ? null : withoutSegmentParameters(path);
  return stripped !== null && mismatchOf(route, method, stripped) === null ? null : mismatch;
}

function partOf(policy: Policy, decided: DecidedRequest | null, forUnproven: boolean): Part | null {
  const counts = ({ policy: { bucketId }, forUnproven: unproven }: Counter): boolean =>
    bucketId === policy.bucketId && unproven === forUnproven;
  return decided?.spent.parts.find(({ counter }) => counts(counter)) ?? null;
}

/** -1 where it is not charged: the credential is known to work. */
function usedBy({ spent }: DecidedRequest, part: Part): number {
  return spent.used[spent.parts.indexOf(part)] ?? -1;
}
