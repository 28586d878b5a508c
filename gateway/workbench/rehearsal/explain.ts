/** Explains one request: for every policy of the file, whether it applies, why not, and the state of its counter. */

import type { Priority } from '#gateway/bounds/priority.ts';
import { type Identifier, partsOf, type SimpleIdentifier } from '#gateway/identity/identifier.ts';
import type { Bucket } from '#gateway/limiter/charge.ts';
import { allowanceOf } from '#gateway/policy/allowance.ts';
import type { Counter } from '#gateway/policy/counter.ts';
import { exclusionOf, mismatchOf } from '#gateway/policy/mismatch.ts';
import { type Algorithm, banText, type Cost } from '#gateway/policy/policy.ts';
import type { LoadedPolicy, PolicySet } from '#gateway/policy/policy-set.ts';
import { withoutSegmentParameters } from '#gateway/policy/target.ts';
import { recordOf } from '#gateway/reply/own-reply.ts';
import type { Seconds } from '#shared/clock.ts';
import type { Rehearsal, RehearsedRequest } from './rehearsal.ts';
import type { DecidedRequest, Rehearsed } from './rehearsed.ts';

export interface Explanation {
  readonly decision: 'allow' | 'deny' | 'uncovered' | 'malformed';
  /** The canonical path. If the path is malformed, the path as sent. */
  readonly path: string;
  /** The status that the gateway sends; null if the application answers. */
  readonly status: number | null;
  readonly headers: Readonly<Record<string, string>>;
  /** Why the request is malformed, excluded or denied; null otherwise. */
  readonly reason: string | null;
  /** Priority of the request while the application is overloaded; null without `protect`. */
  readonly priority: Priority | null;
  /** All policies, in the order of the file. */
  readonly policies: readonly ExplainedPolicy[];
}

interface ExplainedPolicy {
  readonly name: string;
  readonly line: number;
  readonly matched: boolean;
  /** Why the policy applies or not. */
  readonly reason: string;
  /** Digest of the counted client; null if none is counted. */
  readonly identity: string | null;
  readonly bucket: string;
  /** The maximum number of units in use at once. */
  readonly limit: number;
  readonly windowSeconds: Seconds;
  readonly algorithm: Algorithm;
  /** Usage in this window before this request; null if no client is counted. */
  readonly used: number | null;
  /** Units that this request takes; null if no client is counted. */
  readonly cost: number | null;
  readonly remaining: number | null;
}

/** Copies live counters into a rehearsal before it decides. */
type Seed = (rehearsal: Rehearsal, request: RehearsedRequest) => Promise<void>;

/** Describes the place of a value, unless it is obvious. */
const WHERE: Readonly<Record<SimpleIdentifier['kind'], string>> = {
  address: '',
  everyone: '',
  path: '',
  credential: '',
  token: ' in a valid token',
  body: ' in a JSON or form body of at most 8 KiB',
};

/** Part of the reason of a policy in shadow mode. */
export const NEVER_DENIES = 'shadow: it never denies';

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
      priority: null,
      policies: [],
    };
  }
  const decided = asked.kind === 'allow' || asked.kind === 'deny' ? asked : null;
  const path = asked.path;
  const bypass = bypassOf(set, asked, request.method, path);
  const policies = set.policies.map((policy) => explainPolicy(policy, request, bypass, decided, path));
  return {
    decision: asked.kind === 'listed' ? 'deny' : asked.kind,
    path,
    status: asked.kind === 'listed' ? asked.status : asked.kind === 'deny' ? 429 : null,
    headers: recordOf(asked.kind === 'uncovered' ? [] : asked.headers),
    reason: bypass === null ? reasonOf(decided) : `${bypass}: no policy applies`,
    priority: set.protect === null ? null : rehearsal.priorityOf(request),
    policies,
  };
}

/** Returns why no policy is evaluated; null if policies are. */
function bypassOf(
  { exclude }: PolicySet,
  asked: Exclude<Rehearsed, { kind: 'malformed' }>,
  method: string,
  path: string,
): string | null {
  const entry = asked.kind === 'listed' ? asked.entry : asked.kind === 'uncovered' ? asked.allowedBy : null;
  if (entry !== null) return `${entry.list} has ${entry.text} (line ${entry.line})`;
  const excluded = exclusionOf(exclude, method, path);
  return excluded === null ? null : `exclude has "${excluded.text}"`;
}

function reasonOf(decided: DecidedRequest | null): string | null {
  if (decided === null) return 'no policy applies';
  if (decided.kind === 'allow') return null;
  return decided.violated
    .map((denying) => {
      const { name, line } = denying.policy;
      return `${name} (line ${line}) allows ${allowanceOf(denying, ' s')}`;
    })
    .join('; ');
}

function explainPolicy(
  policy: LoadedPolicy,
  { method }: RehearsedRequest,
  bypass: string | null,
  decided: DecidedRequest | null,
  path: string,
): ExplainedPolicy {
  const { name, line, capacity: limit, windowSeconds, algorithm } = policy;
  const base = { name, line, bucket: policy.bucket, limit, windowSeconds, algorithm };
  const nobody = { ...base, matched: false, identity: null, used: null, cost: null, remaining: null };
  const mismatch = routeMismatch(policy, method, path);
  if (mismatch !== null) return { ...nobody, reason: mismatch };
  if (bypass !== null) return { ...nobody, reason: bypass };
  const bucket = bucketOf(policy, decided, false);
  if (decided === null || bucket === null) return { ...nobody, reason: reasonNotToCount(policy) };
  const unproven = bucketOf(policy, decided, true);
  const used = usedBy(decided, bucket);
  const usedUnproven = unproven === null ? -1 : usedBy(decided, unproven);
  return {
    ...base,
    limit: bucket.capacity,
    matched: true,
    reason: reasonToCount(policy, bucket, unproven, usedUnproven),
    identity: bucket.identity.digest,
    used,
    cost: bucket.cost,
    remaining: Math.max(
      0,
      unproven === null || usedUnproven < 0
        ? bucket.capacity - used
        : Math.min(bucket.capacity - used, unproven.capacity - usedUnproven),
    ),
  };
}

function reasonToCount(
  { identifier, mode, count, cost: policyCost, limit: usual, ban }: LoadedPolicy,
  { cost, limit }: Bucket,
  unproven: Bucket | null,
  usedUnproven: number,
): string {
  const who = whoIsCounted(identifier);
  const takes = takesText(policyCost, cost);
  const overridden = limit === usual ? '' : `; an override makes its limit ${limit} instead of ${usual}`;
  const only = count === 'request' ? '' : `; only each ${count} counts`;
  const bans = ban === null ? '' : `; ${banText(ban)}`;
  const more = `${overridden}${only}${bans}${mode === 'shadow' ? `; ${NEVER_DENIES}` : ''}`;
  return unproven === null || usedUnproven < 0
    ? `route matches, ${who}${takes}${more}`
    : `route matches, ${who}${takes}; unproven, so its address is counted too (${usedUnproven} of ${unproven.capacity} used)${more}`;
}

function takesText(cost: Cost, units: number): string {
  if (cost.kind === 'reply-header')
    return `, it reserves ${units} until the reply reports its units in ${cost.header}`;
  return units === 1 ? '' : `, it takes ${units}`;
}

function reasonNotToCount({ identifier, rollout }: LoadedPolicy): string {
  const absent = `the request presents no ${namesOf(identifier, 'or no')}`;
  if (rollout === null) return absent;
  const outside = `the client is not in the rollout of ${rollout.percent}%`;
  return identifier.kind === 'address' ? outside : `${absent}, or ${outside}`;
}

function whoIsCounted(identifier: Identifier): string {
  switch (identifier.kind) {
    case 'address':
      return 'the client address is counted';
    case 'everyone':
      return 'all clients are counted together';
    case 'credential':
    case 'token':
    case 'path':
    case 'body':
      return `its ${identifier.name} is counted`;
    case 'combined':
      return `its ${namesOf(identifier, 'and')} are counted together`;
    default:
      return identifier satisfies never;
  }
}

function namesOf(identifier: Identifier, between: string): string {
  return partsOf(identifier)
    .map(({ name, kind }) => (between === 'and' ? name : name + WHERE[kind]))
    .join(` ${between} `);
}

function routeMismatch({ route }: LoadedPolicy, method: string, path: string): string | null {
  const mismatch = mismatchOf(route, method, path);
  const stripped = mismatch === null ? null : withoutSegmentParameters(path);
  return stripped !== null && mismatchOf(route, method, stripped) === null ? null : mismatch;
}

function bucketOf(policy: LoadedPolicy, decided: DecidedRequest | null, forUnproven: boolean): Bucket | null {
  const counts = ({ policy: { bucketId }, forUnproven: unproven }: Counter): boolean =>
    bucketId === policy.bucketId && unproven === forUnproven;
  return decided?.spent.buckets.find(({ counter }) => counts(counter)) ?? null;
}

/** Returns -1 if the bucket is not charged, because the credential is proven. */
function usedBy({ spent }: DecidedRequest, bucket: Bucket): number {
  return spent.states[spent.buckets.indexOf(bucket)]?.used ?? -1;
}
