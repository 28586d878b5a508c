/** A refusal as plain data: the fields of its record that do not come from the request. */
import { BOUND_NAMES, type BoundName } from '#gateway/bounds/bound-names.ts';
import type { Bound, Refusal as BoundRefusal } from '#gateway/bounds/bounds.ts';
import type { Client } from '#gateway/bounds/clients.ts';
import type { Priority } from '#gateway/bounds/priority.ts';
import type { Identity } from '#gateway/identity/digest.ts';
import type { Bucket } from '#gateway/limiter/charge.ts';
import type { ListEntry } from '#gateway/policy/lists.ts';
import type { Millis } from '#shared/clock.ts';
import type { DecisionRecord } from './decision-record.ts';

type Recorded = Pick<
  DecisionRecord,
  | 'decision'
  | 'policy'
  | 'line'
  | 'identifier'
  | 'algorithm'
  | 'windowSeconds'
  | 'identity'
  | 'isUnproven'
  | 'cost'
  | 'violated'
  | 'limit'
  | 'used'
  | 'fromMemory'
>;

export interface Refusal extends Recorded {
  readonly resetMs: Millis;
  /** Whether this process decided without the store. */
  readonly isLocal: boolean;
}

/** Bounds have no window, so clients are told to retry soon. */
const RETRY_MS: Millis = 1000;

type Outcome = Pick<
  Refusal,
  'decision' | 'violated' | 'limit' | 'used' | 'resetMs' | 'isLocal' | 'fromMemory'
>;

export function policyRefusal(
  { policy, counter, identity, cost }: Pick<Bucket, 'policy' | 'counter' | 'identity' | 'cost'>,
  { decision, violated, limit, used, resetMs, isLocal, fromMemory }: Outcome,
): Refusal {
  return {
    decision,
    policy: policy.name,
    line: policy.line,
    identifier: policy.identifier.name,
    algorithm: policy.algorithm,
    windowSeconds: policy.windowSeconds,
    identity: identity.digest,
    isUnproven: counter.forUnproven,
    cost,
    violated,
    limit,
    used,
    resetMs,
    isLocal,
    fromMemory,
  };
}

/** Name in the record in place of a policy, if an operator made the ban. */
export const OPERATOR_BAN = 'operator ban';

/** @param endsInMs time until the ban ends @param policy that made it; null if an operator did */
export function banRefusal(identity: Identity, endsInMs: Millis, policy: string | null): Refusal {
  const name = policy === null ? OPERATOR_BAN : policyBan(policy);
  return { ...withoutPolicy(name, identity), decision: 'banned', resetMs: endsInMs };
}

/** Name in the record in place of a policy, if an entry of the list deny closes a route. */
export const CLOSED_ROUTE = 'closed route';

/** @param bucket of the policy */
function policyBan(bucket: string): string {
  return `ban by policy ${bucket}`;
}

/** Describes a refusal by an entry of the list deny. */
export function listRefusal(
  { names, line }: Pick<ListEntry, 'names' | 'line'>,
  identity: Identity,
  resetMs: Millis,
): Refusal {
  const policy = names === 'route' ? CLOSED_ROUTE : DENY_LIST;
  return { ...withoutPolicy(policy, identity), decision: 'listed', line, resetMs, fromMemory: true };
}

const DENY_LIST = 'deny list';

/** Returns all names that records can have in place of a policy. */
export function namesBesidePolicies(buckets: readonly string[]): string[] {
  const bans = buckets.map((bucket) => policyBan(bucket));
  return [OPERATOR_BAN, CLOSED_ROUTE, DENY_LIST, PROTECT, ...BOUND_NAMES.map(boundName), ...bans];
}

const HOLDERS: Readonly<Record<BoundRefusal, string>> = {
  client: 'client address',
  network: 'IPv6 network',
  total: 'all clients',
};

/** Name in the record in place of a policy, if a bound refuses. */
export function boundName(name: BoundName): string {
  return `bound ${name}`;
}

/** @param client null if the request counted only for the total of the bound */
export function boundRefusal(
  bound: Bound,
  reason: BoundRefusal,
  client: Client | null,
  identity: Identity,
): Refusal {
  const holder = reason === 'client' ? client : reason === 'network' ? (client?.network ?? null) : null;
  return {
    ...withoutPolicy(boundName(bound.name), identity),
    decision: 'busy',
    identifier: HOLDERS[reason],
    algorithm: 'concurrency',
    limit: holder === null ? bound.total : bound.limitOf(reason),
    used: holder === null ? bound.held : bound.heldBy(holder),
    resetMs: RETRY_MS,
  };
}

/** Name in the record in place of a policy, if the adaptive limit refuses. */
export const PROTECT = 'protect';

/** Describes a refusal because the application is overloaded. */
export function overloadRefusal(
  { limit, held }: Pick<Bound, 'limit' | 'held'>,
  priority: Priority,
  identity: Identity,
): Refusal {
  return {
    ...withoutPolicy(PROTECT, identity),
    decision: 'busy',
    identifier: `priority ${priority}`,
    algorithm: 'concurrency',
    limit,
    used: held,
    resetMs: RETRY_MS,
  };
}

function withoutPolicy(name: string, { digest }: Identity): Omit<Refusal, 'decision' | 'resetMs'> {
  return {
    policy: name,
    line: 0,
    identifier: name,
    algorithm: 'fixed-window',
    windowSeconds: 0,
    identity: digest,
    isUnproven: false,
    cost: 1,
    violated: [name],
    limit: 0,
    used: null,
    isLocal: true,
    fromMemory: false,
  };
}
