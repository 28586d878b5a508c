/** A record says this of the refusal itself. The rest comes from the request. */
import type { Identity } from '#gateway/identity/digest.ts';
import type { Bucket } from '#gateway/limiter/charge.ts';
import type { Policy } from '#gateway/policy/policy.ts';
import type { Millis } from '#shared/clock.ts';
import type { DecisionRecord } from './decision-record.ts';

export interface Recorded
  extends Pick<
    DecisionRecord,
    | ('decision' | 'policy' | 'line' | 'identifier' | 'algorithm' | 'windowSeconds' | 'identity')
    | ('isUnproven' | 'cost' | 'violated' | 'limit' | 'used' | 'fromMemory')
  > {
  readonly resetMs: Millis;
  /** Whether this process decided without the store. */
  readonly isLocal: boolean;
}

/** Returns the name in the record for the clients that a policy counts. */
export function countedBy({ shareOf, onlyFor, identifier }: Policy): string {
  return shareOf === null && onlyFor !== null ? onlyFor.words.together : identifier.name;
}

/** Returns the fields of a record that say which policy has counted whom. */
export function ofPolicy({ policy, counter, identity, cost }: Bucket) {
  const { name, line, algorithm, windowSeconds } = policy;
  return {
    policy: name,
    line,
    identifier: countedBy(policy),
    algorithm,
    windowSeconds,
    identity: identity.digest,
    isUnproven: counter.forUnproven,
    cost,
  };
}

/** @param name stands in place of a policy */
export function withoutPolicy(name: string, { digest }: Identity): Omit<Recorded, 'decision' | 'resetMs'> {
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
