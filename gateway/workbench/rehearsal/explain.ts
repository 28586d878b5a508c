/** Explains one request: for every policy of the file, whether it applies, why not, and the state of its counter. */

import type { Priority } from '#gateway/bounds/priority.ts';
import {
  type FirstIdentifier,
  type Identifier,
  isPresented,
  partsOf,
  type SimpleIdentifier,
} from '#gateway/identity/identifier.ts';
import { allowanceOf } from '#gateway/policy/allowance.ts';
import { POLICY_ROWS } from '#gateway/policy/keys/policy-keys.ts';
import type { Cover, Match } from '#gateway/policy/match.ts';
import type { Cost } from '#gateway/policy/policy.ts';
import type { LoadedPolicy, PolicySet } from '#gateway/policy/policy-set.ts';
import type { Route } from '#gateway/policy/route.ts';
import { mismatchOf } from '#gateway/policy/route-tree.ts';
import { recordOf } from '#gateway/reply/own-reply.ts';
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
  readonly policies: readonly ReturnType<typeof explainPolicy>[];
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
) {
  const { name, line, capacity: limit, windowSeconds, algorithm } = policy;
  const base = {
    ...{ name, line, bucket: policy.bucket, windowSeconds, algorithm },
    /** The maximum number of units in use at once. */
    limit,
  };
  const nobody = { ...base, matched: false, identity: null, used: null, cost: null, remaining: null };
  if (cover === null || !cover.policies.includes(policy)) {
    const excluded = excludedBy === null ? 'another route' : exclusionText(excludedBy);
    const condition = unmet.find((one) => one.policy === policy);
    return { ...nobody, reason: mismatchOf(policy.route, method, path) ?? condition?.reason ?? excluded };
  }
  if (bypass !== null) return { ...nobody, reason: bypass };
  const own = chargedBy(policy, decided, false);
  if (decided === null || own === null) return { ...nobody, reason: reasonNotToCount(policy) };
  const onAddress = chargedBy(policy, decided, true);
  return {
    ...base,
    limit: own.bucket.capacity,
    matched: true,
    /** Why the policy applies or not. */
    reason: reasonToCount(policy, decided, cover, own, onAddress),
    /** Digest of the counted client; null if none is counted. */
    identity: own.bucket.identity.digest,
    /** Usage in this window before this request, and the units that this request takes. */
    used: own.used,
    cost: own.units,
    remaining: Math.max(0, Math.min(own.left, onAddress?.left ?? own.left)),
  };
}

type Charged = NonNullable<ReturnType<typeof chargedBy>>;

/** Finds a counter of the policy, as it was before the request. null if it is not charged, as if a key is proven. */
function chargedBy({ bucketId }: LoadedPolicy, decided: Decided | null, forUnproven: boolean) {
  const { buckets = [], states = [] } = decided?.spent ?? {};
  const at = buckets.findIndex(
    ({ counter }) => counter.policy.bucketId === bucketId && counter.forUnproven === forUnproven,
  );
  const [bucket, state] = [buckets[at], states[at] ?? null];
  if (bucket === undefined || state === null) return null;
  const { used } = state;
  return { bucket, used, left: bucket.capacity - used, units: state.unitsOf(1, bucket.cost) };
}

/** @param onAddress the counter of the address, which an unproven key is charged to as well */
function reasonToCount(
  policy: LoadedPolicy,
  { request, charged }: Decided,
  { identifiers }: Cover,
  { bucket, units }: Charged,
  onAddress: Charged | null,
): string {
  const { identifier, onlyFor, shareOf, cost, limit } = policy;
  const who =
    onlyFor !== null && shareOf === null
      ? `${onlyFor.words.together} are counted together`
      : whoIsCounted(identifier, charged.identified.parts?.[identifiers.indexOf(identifier)]);
  const client = request.caller.identity().digest;
  const canBeRegular = bucket.unlessProven.some(({ digest }) => digest === client);
  return [
    `route matches, ${who}${takesText(cost, units)}`,
    onAddress === null
      ? []
      : `unproven, so its address is counted too (${onAddress.used} of ${onAddress.bucket.capacity} used)`,
    bucket.limit === limit ? [] : `an override makes its limit ${bucket.limit} instead of ${limit}`,
    POLICY_ROWS.flatMap(([, { explain }]) => explain?.(policy, canBeRegular) ?? []),
  ]
    .flat()
    .join('; ');
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
