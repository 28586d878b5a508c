/** Explains one request: for every policy of the file, whether it applies, why not, and the state of its counter. */

import type { Priority } from '#gateway/bounds/priority.ts';
import {
  type FirstIdentifier,
  type Identifier,
  isPresented,
  partsOf,
  type SimpleIdentifier,
} from '#gateway/identity/identifier.ts';
import type { Bucket } from '#gateway/limiter/charge.ts';
import { allowanceOf } from '#gateway/policy/allowance.ts';
import type { Counter } from '#gateway/policy/counter.ts';
import { POLICY_ROWS } from '#gateway/policy/keys/policy-keys.ts';
import type { Match } from '#gateway/policy/match.ts';
import type { Algorithm, Cost } from '#gateway/policy/policy.ts';
import type { LoadedPolicy, PolicySet } from '#gateway/policy/policy-set.ts';
import type { Route } from '#gateway/policy/route.ts';
import { mismatchOf } from '#gateway/policy/route-tree.ts';
import { recordOf } from '#gateway/reply/own-reply.ts';
import type { Seconds } from '#shared/clock.ts';
import type { Rehearsal, RehearsedRequest } from './rehearsal.ts';
import { type Decided, priorityOf, type Rehearsed, replyTo } from './rehearsed.ts';

export interface Explanation {
  readonly decision: 'allow' | 'deny' | 'uncovered' | 'malformed';
  /** The canonical path. If the path is malformed, the path as sent. */
  readonly path: string;
  /** All paths that servers may read, the canonical one first. Policies count the request if they cover any of them. */
  readonly readings: readonly string[];
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

/** Describes the place of a value, unless it is obvious. */
const WHERE: Partial<Record<SimpleIdentifier['kind'], string>> = {
  token: ' in a valid token',
  body: ' in a JSON or form body of at most 8 KiB',
};

export function explain(set: PolicySet, rehearsal: Rehearsal, request: RehearsedRequest): Explanation {
  const asked = rehearsal.ask(request);
  const { status, headers } = replyTo(asked, rehearsal.clock(), rehearsal.askingOf(request));
  if (asked.kind === 'malformed') {
    const { kind: decision, reason } = asked;
    return {
      decision,
      path: request.target,
      readings: [],
      status,
      headers: {},
      reason,
      priority: null,
      policies: [],
    };
  }
  const decided = asked.kind === 'allow' || asked.kind === 'deny' ? asked : null;
  const bypass = bypassOf(asked);
  return {
    decision: asked.kind === 'listed' || asked.kind === 'banned' ? 'deny' : asked.kind,
    path: asked.match.path,
    readings: asked.match.paths,
    status,
    headers: recordOf(headers),
    reason: bypass === null ? reasonOf(decided) : `${bypass}: no policy applies`,
    priority: set.protect === null ? null : priorityOf(asked),
    policies: set.policies.map((policy) => explainPolicy(policy, request, bypass, decided, asked.match)),
  };
}

/** Returns why no policy is evaluated; null if policies are. */
function bypassOf(asked: Exclude<Rehearsed, { kind: 'malformed' }>): string | null {
  const { cover, excludedBy } = asked.match;
  const entry = asked.kind === 'listed' ? asked.entry : asked.kind === 'uncovered' ? asked.allowedBy : null;
  if (entry !== null) return `${entry.list} has ${entry.text} (line ${entry.line})`;
  return cover === null && excludedBy !== null ? exclusionText(excludedBy) : null;
}

function exclusionText({ text }: Route): string {
  return `exclude has "${text}"`;
}

function reasonOf(decided: Decided | null): string | null {
  if (decided === null) return 'no policy applies';
  if (decided.kind === 'allow') return null;
  return decided.decision.violated
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
  decided: Decided | null,
  { path, cover, unmet, excludedBy }: Match,
): ExplainedPolicy {
  const { name, line, capacity: limit, windowSeconds, algorithm, identifier } = policy;
  const base = { name, line, bucket: policy.bucket, limit, windowSeconds, algorithm };
  const nobody = { ...base, matched: false, identity: null, used: null, cost: null, remaining: null };
  if (cover === null || !cover.policies.includes(policy)) {
    const excluded = excludedBy === null ? 'another route' : exclusionText(excludedBy);
    const condition = unmet.find((one) => one.policy === policy);
    return { ...nobody, reason: mismatchOf(policy.route, method, path) ?? condition?.reason ?? excluded };
  }
  if (bypass !== null) return { ...nobody, reason: bypass };
  const bucket = bucketOf(policy, decided, false);
  if (decided === null || bucket === null || usedBy(decided, bucket) < 0)
    return { ...nobody, reason: reasonNotToCount(policy) };
  const unproven = bucketOf(policy, decided, true);
  const used = usedBy(decided, bucket);
  const usedUnproven = unproven === null ? -1 : usedBy(decided, unproven);
  return {
    ...base,
    limit: bucket.capacity,
    matched: true,
    reason: reasonToCount(
      policy,
      policy.onlyFor !== null && policy.shareOf === null
        ? `${policy.onlyFor.words.together} are counted together`
        : whoIsCounted(identifier, decided.charged.identified.parts?.[cover.identifiers.indexOf(identifier)]),
      unitsOf(decided, bucket),
      bucket,
      unproven,
      usedUnproven,
      bucket.unlessProven.some(({ digest }) => digest === decided.request.caller.identity().digest),
    ),
    identity: bucket.identity.digest,
    used,
    cost: unitsOf(decided, bucket),
    remaining: Math.max(
      0,
      unproven === null || usedUnproven < 0
        ? bucket.capacity - used
        : Math.min(bucket.capacity - used, unproven.capacity - usedUnproven),
    ),
  };
}

function reasonToCount(
  policy: LoadedPolicy,
  who: string,
  units: number,
  { limit }: Bucket,
  unproven: Bucket | null,
  usedUnproven: number,
  canBeRegular: boolean,
): string {
  const takes = takesText(policy.cost, units);
  const overridden =
    limit === policy.limit ? null : `an override makes its limit ${limit} instead of ${policy.limit}`;
  const remarks = POLICY_ROWS.map(([, { explain }]) => explain?.(policy, canBeRegular) ?? null);
  const more = [overridden, ...remarks].flatMap((text) => (text === null ? [] : `; ${text}`)).join('');
  return unproven === null || usedUnproven < 0
    ? `route matches, ${who}${takes}${more}`
    : `route matches, ${who}${takes}; unproven, so its address is counted too (${usedUnproven} of ${unproven.capacity} used)${more}`;
}

function takesText(cost: Cost, units: number): string {
  if (cost.kind === 'reply-header')
    return `, it reserves ${units} until the reply reports its units in ${cost.header}`;
  if (cost.kind === 'reply-bytes')
    return `, it reserves ${units} until the reply ends and takes the bytes of its body`;
  if (units === 0) return ', its value was used before, so it takes nothing';
  return units === 1 ? '' : `, it takes ${units}`;
}

function reasonNotToCount({ identifier, unless, onlyFor, distinct, rollout }: LoadedPolicy): string {
  const reasons: string[] = [];
  if (identifier.kind === 'network')
    reasons.push(`the client address is in no network of ${identifier.name}`);
  // Clients always have an address.
  else if (identifier.kind === 'first') {
    if (identifier.address === null)
      reasons.push(`the request presents no ${namesOf(identifier.parts, 'and no')}`);
  } else if (identifier.kind !== 'address' && identifier.kind !== 'everyone')
    reasons.push(`the request presents no ${namesOf(partsOf(identifier), 'or no')}`);
  // Requests always have an address and a path.
  if (distinct !== null && isPresented(distinct) && distinct.kind !== 'path')
    reasons.push(`the request presents no ${namesOf([distinct], 'or no')}`);
  if (unless !== null) reasons.push(`its ${unless.name} is proven`);
  if (onlyFor !== null) reasons.push(onlyFor.words.outside);
  if (rollout !== null) reasons.push(`the client is not in the rollout of ${rollout.percent}%`);
  return reasons.join(', or ');
}

/** @param part the part of the identifier that counts, if it is the first of several */
function whoIsCounted(identifier: Identifier, part?: SimpleIdentifier): string {
  switch (identifier.kind) {
    case 'address':
      return 'the client address is counted';
    case 'everyone':
      return 'all clients are counted together';
    case 'combined':
      return `its ${namesOf(identifier.parts, 'and')} are counted together`;
    case 'first':
      return part === undefined
        ? `its ${namesOf(identifier.parts, 'or')} is counted`
        : firstText(identifier, part);
    default:
      return `its ${identifier.name} is counted`;
  }
}

function firstText({ parts }: FirstIdentifier, part: SimpleIdentifier): string {
  const absent = parts.slice(
    0,
    parts.findIndex(({ name }) => name === part.name),
  );
  const reason = absent.length === 0 ? '' : `, because it presents no ${namesOf(absent, 'and no')}`;
  return `${whoIsCounted(part)}${reason}`;
}

function namesOf(parts: readonly SimpleIdentifier[], between: string): string {
  return parts
    .map(({ name, kind }) => (between === 'and' ? name : name + (WHERE[kind] ?? '')))
    .join(` ${between} `);
}

function bucketOf(policy: LoadedPolicy, decided: Decided | null, forUnproven: boolean): Bucket | null {
  const counts = ({ policy: { bucketId }, forUnproven: unproven }: Counter): boolean =>
    bucketId === policy.bucketId && unproven === forUnproven;
  return decided?.spent.buckets.find(({ counter }) => counts(counter)) ?? null;
}

/** Returns the units that the request takes of a bucket that counts it. */
function unitsOf({ spent }: Decided, bucket: Bucket): number {
  return spent.states[spent.buckets.indexOf(bucket)]?.unitsOf(1, bucket.cost) ?? bucket.cost;
}

/** Returns -1 if the bucket is not charged, because the credential is proven. */
function usedBy({ spent }: Decided, bucket: Bucket): number {
  return spent.states[spent.buckets.indexOf(bucket)]?.used ?? -1;
}
