/**
 * A refusal is a value: why a request is refused, with the facts. Each kind has one row in KINDS. The count, the record
 * for `floodgate why`, the line of the access log and the reply are made from it. To add a kind, add a row.
 */
import type { Bound, Refusal as BoundRefusal } from '#gateway/bounds/bounds.ts';
import type { Client } from '#gateway/bounds/clients.ts';
import type { Priority } from '#gateway/bounds/priority.ts';
import type { Identity } from '#gateway/identity/digest.ts';
import type { Bucket } from '#gateway/limiter/charge.ts';
import { retryAfterSeconds, type Violation } from '#gateway/limiter/decision.ts';
import type { ListEntry } from '#gateway/policy/lists.ts';
import type { Millis, Seconds } from '#shared/clock.ts';
import type { RandomInt } from '#shared/random-int.ts';
import { DENIED_SECONDS, type ErrorCode, RETRY_SECONDS } from './codes.ts';
import type { DecisionRecord } from './decision-record.ts';
import {
  BOUND_REASONS,
  banName,
  boundName,
  countedBy,
  LIST_REASONS,
  limitReasonOf,
  REASONS,
  type Reason,
} from './reasons.ts';

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

/** The fields of the record that do not come from the request. */
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

/** What the client of a refused request is told. */
export interface Told {
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
interface Refused {
  identity(): Identity;
}

/** A row of the table. */
interface Kind<K extends Refusal['kind'], T = Extract<Refusal, { kind: K }>> {
  reason(refusal: T): Reason;
  /** Returns what `why` will say, besides the request. Missing, or null, if the refusal has no id. */
  record?(refusal: T, caller: Refused): Recorded | null;
  /** @param isClientRoute whether survey widgets ask */
  told(refusal: T, isClientRoute: boolean): Told;
}

const RETRY_MS: Millis = RETRY_SECONDS * 1000;

const KINDS: { readonly [K in Refusal['kind']]: Kind<K> } = {
  malformed: { reason: () => REASONS.malformed, told: ({ reason }) => ({ text: reason }) },
  banned: {
    reason: () => REASONS.ban,
    record: ({ identity, leftMs, policy }) => ({
      ...withoutPolicy(policy === null ? REASONS.ban.name : banName(policy), identity),
      decision: REASONS.ban.kind,
      resetMs: leftMs,
    }),
    told: ({ leftMs }) => ({
      text: REASONS.ban.text,
      retryAfter: Math.max(1, Math.ceil(leftMs / 1000)),
    }),
  },
  listed: {
    reason: ({ entry }) => LIST_REASONS[entry.names],
    record: ({ entry: { names, line } }, caller) => ({
      ...withoutPolicy(LIST_REASONS[names].name, caller.identity()),
      decision: LIST_REASONS[names].kind,
      line,
      resetMs: DENIED_SECONDS * 1000,
      fromMemory: true,
    }),
    // Survey widgets retry only a 429.
    told: ({ entry }, isClientRoute) => ({
      text: LIST_REASONS[entry.names].text(entry),
      ...(entry.status === 403 && !isClientRoute ? { code: 'gateway_forbidden' } : {}),
    }),
  },
  limit: {
    reason: ({ violated: [first] }) => limitReasonOf(first?.policy),
    record({ violated, bucket, by }) {
      const [first] = violated;
      return ofPolicy(bucket, {
        decision: REASONS.policyLimit.kind,
        violated: violated.map(({ policy }) => policy.name),
        limit: first?.share ?? bucket.capacity,
        used: first?.used ?? null,
        resetMs: first?.resetMs ?? 0,
        isLocal: by === 'share',
        fromMemory: by === 'memory',
      });
    },
    told({ violated, retryAfter }) {
      const [first] = violated;
      const policies = [...new Set(violated.map(({ policy }) => policy.name))];
      const canNeverPass = violated.some((one) => one.canNeverPass);
      return {
        text: limitReasonOf(first?.policy).text(first),
        ...(canNeverPass ? {} : { retryAfter }),
        limits: violated,
        policies,
        extra: { error: { code: 429, message: 'Too Many Requests' }, 'violated-policies': policies },
      };
    },
  },
  store: {
    reason: () => REASONS.storeUnavailable,
    record({ bucket }) {
      if (bucket === null) return null;
      return ofPolicy(bucket, {
        decision: REASONS.storeUnavailable.kind,
        violated: [bucket.policy.name],
        limit: bucket.capacity,
        used: null,
        resetMs: RETRY_MS,
        isLocal: true,
        fromMemory: false,
      });
    },
    told: ({ bucket }) => ({
      text: REASONS.storeUnavailable.text,
      policies: bucket === null ? [] : [bucket.policy.name],
    }),
  },
  bound: {
    reason: ({ refusal }) => BOUND_REASONS[refusal],
    record({ bound, refusal, client }, caller) {
      const { kind, counted } = BOUND_REASONS[refusal];
      const holder = refusal === 'client' ? client : refusal === 'network' ? (client?.network ?? null) : null;
      return {
        ...withoutPolicy(boundName(bound.name), caller.identity()),
        decision: kind,
        identifier: counted,
        algorithm: 'concurrency',
        limit: holder === null ? bound.total : bound.limitOf(refusal),
        used: holder === null ? bound.held : bound.heldBy(holder),
        resetMs: RETRY_MS,
      };
    },
    told: ({ bound: { name }, refusal }) => ({
      text: BOUND_REASONS[refusal].text(name),
      extra: { details: { bound: name, scope: refusal } },
    }),
  },
  overloaded: {
    reason: () => REASONS.protect,
    record: ({ bound, priority, as }, caller) => ({
      ...withoutPolicy(REASONS.protect.name, caller.identity()),
      decision: REASONS.protect.kind,
      identifier: `priority ${priority}${as === undefined ? '' : ` as a ${as}`}`,
      algorithm: 'concurrency',
      limit: bound.limit,
      used: bound.held,
      resetMs: RETRY_MS,
    }),
    told: ({ priority }) => ({ text: REASONS.protect.text, extra: { details: { priority } } }),
  },
  unavailable: { reason: () => REASONS.upstreamUnavailable, told: ({ reason }) => ({ text: reason }) },
  timeout: {
    reason: () => REASONS.upstreamTimeout,
    told: () => ({ text: REASONS.upstreamTimeout.text }),
  },
};

export function kindOf<K extends Refusal['kind']>({ kind }: { readonly kind: K }): Kind<K> {
  return KINDS[kind];
}

type OfPolicy =
  | 'policy'
  | 'line'
  | 'identifier'
  | 'algorithm'
  | 'windowSeconds'
  | 'identity'
  | 'isUnproven'
  | 'cost';

function ofPolicy({ policy, counter, identity, cost }: Bucket, more: Omit<Recorded, OfPolicy>): Recorded {
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
    ...more,
  };
}

/** @param name stands in place of a policy */
function withoutPolicy(name: string, { digest }: Identity): Omit<Recorded, 'decision' | 'resetMs'> {
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
