/** A refusal is a value: why a request is refused, with the facts. reasons.ts has a row for each reason. */
import type { Bound, Refusal as BoundRefusal } from '#gateway/bounds/bounds.ts';
import type { Client } from '#gateway/bounds/clients.ts';
import type { Priority } from '#gateway/bounds/priority.ts';
import type { Identity } from '#gateway/identity/digest.ts';
import type { Bucket } from '#gateway/limiter/charge.ts';
import { retryAfterSeconds, type Violation } from '#gateway/limiter/limiter.ts';
import type { LoggedDecision } from '#gateway/observe/log-line.ts';
import type { ListEntry } from '#gateway/policy/lists.ts';
import type { Policy } from '#gateway/policy/policy.ts';
import type { Millis, Seconds } from '#shared/clock.ts';
import type { RandomInt } from '#shared/random-int.ts';
import type { ErrorCode } from './codes.ts';
import type { DecisionRecord, RefusalKind } from './decision-record.ts';

export type Refusal =
  /** The request can be read in two ways, or breaks a rule of HTTP. */
  | { readonly kind: 'malformed'; readonly reason: string }
  /** `policy` made the ban; null if an operator did. */
  | {
      readonly kind: 'banned';
      readonly identity: Identity;
      readonly leftMs: Millis;
      readonly policy: string | null;
    }
  | { readonly kind: 'listed'; readonly entry: Pick<ListEntry, 'names' | 'line' | 'status' | 'reason'> }
  | LimitRefusal
  /** The store is unavailable. `bucket` belongs to a policy with `onStoreFailure: deny`; null if it is not known. */
  | { readonly kind: 'store'; readonly bucket: Bucket | null }
  /** `client` holds the resources; null if the request counted only for the total of the bound. */
  | {
      readonly kind: 'bound';
      readonly bound: Bound;
      readonly refusal: BoundRefusal;
      readonly client: Client | null;
    }
  /** The application is slow, and `protect` is on. `bound` is that of the requests in progress there. */
  | {
      readonly kind: 'overloaded';
      readonly bound: Pick<Bound, 'limit' | 'held'>;
      readonly priority: Priority;
      /** See Lane. */
      readonly as?: string | undefined;
    }
  | { readonly kind: 'unavailable'; readonly reason: string }
  | { readonly kind: 'timeout' };

export interface LimitRefusal {
  readonly kind: 'limit';
  /** The exhausted policies, the one that resets last first. It may be empty, see `limitRefusal`. */
  readonly violated: readonly Violation[];
  readonly retryAfter: Seconds;
  /** The exhausted bucket that the record names. */
  readonly bucket: Bucket;
  /**
   * `store`: the store denied. `share`: the store is unavailable, and the share of this process is used up. `memory`: the
   * store was not asked.
   */
  readonly by: 'store' | 'share' | 'memory';
}

/** What the client of a refused request is told. */
interface Told {
  readonly text: string;
  /** Another code than that of the reason. */
  readonly code?: ErrorCode;
  /** Time to wait; missing if waiting does not help, or the code has the time already. */
  readonly retryAfter?: Seconds;
  /** Policies whose limit the reply shows. */
  readonly limits?: readonly Violation[];
  /** Names of the denying policies. */
  readonly policies?: readonly string[];
  /** Further members of the body. */
  readonly extra?: object;
}

/** The address of a client, as records name it. */
export interface RefusedClient {
  identity(): Identity;
}

/** A row of reasons.ts, for refusals of type T. */
export interface Reason<T> {
  /** What the client gets. codes.ts has the status, the header fields and the page. */
  readonly code: ErrorCode;
  /** `decision` in the access log. Missing if it is what the policies decided. */
  readonly logged?: LoggedDecision;
  /** @param isClientRoute whether survey widgets ask */
  readonly told: (refusal: T, isClientRoute: boolean) => Told;
  /** Returns what `why` will say, besides the request. Missing, or null, if the refusal has no id. */
  readonly record?: (refusal: T, client: RefusedClient) => Recorded | null;
}

/** A reason whose refusals have an id and a record. */
export interface RecordedReason<T> extends Reason<T> {
  readonly record: NonNullable<Reason<T>['record']>;
  /** Kind of the refusal in its id and its record. */
  readonly decision: RefusalKind;
  /** Stands in the record in place of a policy. */
  readonly name?: string;
  /** Stands in the record in place of an identifier. */
  readonly counted?: string | undefined;
  /** These sentences say what happened. */
  readonly why: (record: DecisionRecord) => readonly string[];
  /** A sentence says how to change it. */
  readonly advice: (record: DecisionRecord) => string;
}

export type Of<K extends Refusal['kind']> = Extract<Refusal, { readonly kind: K }>;

/** @param buckets of the charge @param randomInt null for the exact time to wait */
export function limitRefusal(
  violated: readonly Violation[],
  buckets: readonly Bucket[],
  by: LimitRefusal['by'],
  randomInt: RandomInt | null,
): LimitRefusal {
  // `violated` may be empty in a Redis Cluster: the counter that denied may have room again a moment later.
  const bucket = violated[0]?.bucket ?? buckets[0];
  if (bucket === undefined) throw new Error('only what was charged is denied');
  return { kind: 'limit', violated, bucket, by, retryAfter: retryAfterSeconds(violated, randomInt) };
}

/** @param buckets of the charge */
export function storeRefusal(buckets: readonly Bucket[]): Refusal {
  const denies = ({ policy }: Bucket): boolean =>
    policy.mode === 'enforce' && policy.onStoreFailure === 'deny';
  return { kind: 'store', bucket: buckets.find(denies) ?? null };
}

/** A record says this of the refusal itself. The rest comes from the request. */
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
