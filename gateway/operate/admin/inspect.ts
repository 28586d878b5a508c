/** Reads the counters and the ban of one identity. */

import { EMPTY } from '#gateway/algorithms/algorithm.ts';
import type { Ban } from '#gateway/bans/bans.ts';
import type { Control } from '#gateway/bans/control.ts';
import type { Identity } from '#gateway/identity/digest.ts';
import { BucketState } from '#gateway/limiter/bucket-state.ts';
import { dayOf, daysOf, type History } from '#gateway/limiter/history.ts';
import { countersOf } from '#gateway/policy/counter.ts';
import { regularsIn } from '#gateway/policy/learning.ts';
import { capacityFor } from '#gateway/policy/overrides.ts';
import type { PolicySet } from '#gateway/policy/policy-set.ts';
import { DAY_MS, type Regulars } from '#gateway/policy/regulars.ts';
import { isoTime, type Millis } from '#shared/clock.ts';

export interface Inspected {
  readonly identity: string;
  /** Buckets that are not empty. */
  readonly buckets: readonly InspectedBucket[];
  readonly banned: boolean;
  /** The ban of the identity; null if it is not banned. */
  readonly ban: ShownBan | null;
  /** Whether it is a regular; null without `newcomers` in the policy file. */
  readonly regular: ShownRegular | null;
}

export interface ShownRegular {
  /** When it becomes a newcomer again unless it comes back; ISO 8601; null if it is one. */
  readonly until: string | null;
  /** The days with good replies that count, such as 2026-11-27, in their order. A proven key needs none. */
  readonly days: readonly string[];
}

export interface ShownBan {
  readonly until: string;
  readonly reason: string;
  /** The row of the policy file that made the ban; null if an operator made it. */
  readonly policy: string | null;
}

interface InspectedBucket {
  /** The first policy of the bucket. */
  readonly policy: string;
  readonly bucket: string;
  /** Whether the counter is that of an address for requests with unproven credentials. */
  readonly unproven: boolean;
  readonly used: number;
  readonly limit: number;
  /** Time at which the whole limit is available again, without further requests. ISO 8601, UTC. */
  readonly resetAt: string;
}

export function shownBan({ endsAt, reason, policy }: Ban): ShownBan {
  return { until: isoTime(endsAt), reason, policy };
}

export async function inspect(identity: Identity, set: PolicySet, control: Control): Promise<Inspected> {
  const counters = countersOf(set);
  // Ignore overrides by plan or address, because they depend on the request.
  const limits = counters.map(({ policy }) => policy.overrides?.digests.get(identity.digest) ?? policy.limit);
  const { now, states, provenUntil } = await control.look(identity, counters, limits);
  const ban = await control.banOf(identity);
  const rule = regularsIn(set);
  const history = rule === null ? null : await control.historyOf(identity);
  const buckets = counters.flatMap(({ policy, forUnproven }, i) => {
    const limit = limits[i] ?? policy.limit;
    const capacity = capacityFor(policy, limit);
    const state = new BucketState(policy, states[i] ?? EMPTY, capacity, limit);
    if (state.used === 0) return [];
    const { name, bucket } = policy;
    const resetAt = isoTime(now + state.resetMs(0));
    return [{ policy: name, bucket, unproven: forUnproven, used: state.used, limit: capacity, resetAt }];
  });
  return {
    identity: identity.digest,
    buckets,
    banned: ban !== null,
    ban: ban === null ? null : shownBan(ban),
    regular: rule === null ? null : shownRegular(rule, history, provenUntil, now),
  };
}

function shownRegular(
  { days: within, keys }: Regulars,
  history: History | null,
  provenUntil: Millis | null,
  now: Millis,
): ShownRegular {
  const days = history === null ? [] : daysOf(history).filter((day) => day > dayOf(now) - within);
  const isRegular = provenUntil !== null && provenUntil > now && days.length + keys.length > 0;
  return {
    until: isRegular ? isoTime(provenUntil) : null,
    days: days.map((day) => isoTime(day * DAY_MS).slice(0, 10)),
  };
}
