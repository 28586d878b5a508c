/** A refusal as plain data: the fields of its record that do not come from the request. */
import type { Bound, Refusal as BoundRefusal } from '#gateway/bounds/bounds.ts';
import type { Client } from '#gateway/bounds/clients.ts';
import type { Priority } from '#gateway/bounds/priority.ts';
import type { Identity } from '#gateway/identity/digest.ts';
import type { Bucket } from '#gateway/limiter/charge.ts';
import type { ListEntry } from '#gateway/policy/lists.ts';
import type { Millis } from '#shared/clock.ts';
import { DENIED_SECONDS, RETRY_SECONDS } from './codes.ts';
import type { DecisionRecord } from './decision-record.ts';
import { BOUND_REASONS, banName, boundName, countedBy, LIST_REASONS, REASONS } from './reasons.ts';

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

const RETRY_MS: Millis = RETRY_SECONDS * 1000;

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
    identifier: countedBy(policy),
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

/** @param endsInMs time until the ban ends @param policy that made it; null if an operator did */
export function banRefusal(identity: Identity, endsInMs: Millis, policy: string | null): Refusal {
  const { name, kind } = REASONS.ban;
  const banned = withoutPolicy(policy === null ? name : banName(policy), identity);
  return { ...banned, decision: kind, resetMs: endsInMs };
}

/** Describes a refusal by an entry of the list deny. */
export function listRefusal({ names, line }: Pick<ListEntry, 'names' | 'line'>, identity: Identity): Refusal {
  const { name, kind } = LIST_REASONS[names];
  const listed = withoutPolicy(name, identity);
  return { ...listed, decision: kind, line, resetMs: DENIED_SECONDS * 1000, fromMemory: true };
}

/** @param client null if the request counted only for the total of the bound */
export function boundRefusal(
  bound: Bound,
  reason: BoundRefusal,
  client: Client | null,
  identity: Identity,
): Refusal {
  const { kind, counted } = BOUND_REASONS[reason];
  const holder = reason === 'client' ? client : reason === 'network' ? (client?.network ?? null) : null;
  return {
    ...withoutPolicy(boundName(bound.name), identity),
    decision: kind,
    identifier: counted,
    algorithm: 'concurrency',
    limit: holder === null ? bound.total : bound.limitOf(reason),
    used: holder === null ? bound.held : bound.heldBy(holder),
    resetMs: RETRY_MS,
  };
}

/** Describes a refusal because the application is overloaded. */
export function overloadRefusal(
  { limit, held }: Pick<Bound, 'limit' | 'held'>,
  priority: Priority,
  isNewcomer: boolean,
  identity: Identity,
): Refusal {
  const { name, kind } = REASONS.protect;
  return {
    ...withoutPolicy(name, identity),
    decision: kind,
    identifier: `priority ${priority}${isNewcomer ? ' as a newcomer' : ''}`,
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
