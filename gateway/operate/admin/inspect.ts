/** Reads the counters, the ban and the history of one identity. */
import { EMPTY } from '#gateway/algorithms/algorithm.ts';
import { type Ban, Bans } from '#gateway/bans/bans.ts';
import type { Control } from '#gateway/bans/control.ts';
import { ROWS_MAX } from '#gateway/bans/rows.ts';
import { BucketState } from '#gateway/limiter/bucket-state.ts';
import { dayOf, daysOf } from '#gateway/limiter/history.ts';
import { capacityFor } from '#gateway/policy/clients.ts';
import { countersOf } from '#gateway/policy/counter.ts';
import { DAY_MS } from '#gateway/policy/groups.ts';
import type { PolicySet } from '#gateway/policy/policy-set.ts';
import { regularsIn } from '#gateway/policy/regulars.ts';
import { isoTime } from '#shared/clock.ts';
import type { Named, Visitor } from './subject.ts';

/** `policy` is the row of the policy file that made the ban; null if an operator made it. */
export function shownBan({ endsAt, reason, policy }: Ban) {
  return { until: isoTime(endsAt), reason, policy };
}
export type ShownBan = ReturnType<typeof shownBan>;

export type Inspected = Awaited<ReturnType<typeof inspect>>;

/** Returns the buckets of the client that are not empty, its ban, and its history. */
export async function inspect(
  { kind, name: written, identity, bannedAs, visitor }: Named,
  set: PolicySet,
  control: Control,
) {
  const counters = countersOf(set);
  // Ignore overrides by plan or address, because they depend on the request.
  const limits = counters.map(
    ({ policy }) => policy.overrides?.clients.digests.get(identity.digest) ?? policy.limit,
  );
  const { now, states } = await control.look(identity, counters, limits);
  const bans = await bansOf(control);
  const ban = bans.of(bannedAs.digest, 0) ?? bans.onAddress(visitor.address, 0);
  const rule = regularsIn(set);
  const buckets = counters.flatMap(({ policy, forUnproven }, i) => {
    const limit = limits[i] ?? policy.limit;
    const capacity = capacityFor(policy, limit);
    const state = new BucketState(policy, states[i] ?? EMPTY, capacity, limit);
    if (state.used === 0) return [];
    const { name, bucket } = policy;
    const resetAt = isoTime(now + state.resetMs(0));
    return [
      {
        /** The first policy of the bucket. */
        policy: name,
        bucket,
        /** Whether the counter is that of an address for requests with unproven credentials. */
        unproven: forUnproven,
        used: state.used,
        limit: capacity,
        /** Time at which the whole limit is available again, without further requests. ISO 8601, UTC. */
        resetAt,
      },
    ];
  });
  return {
    identity: bannedAs.digest,
    buckets,
    banned: ban !== null,
    ban: ban === null ? null : shownBan(ban),
    /** Whether it is a regular; null if no policy asks for it. */
    regular: rule === null ? null : await regularOf(visitor, rule, control),
    kind,
    /** The address or the network as the operator wrote it; otherwise the digest. */
    name: written,
  };
}

export async function bansOf(control: Control): Promise<Bans> {
  const bans = new Bans();
  for (const { digest, ...ban } of (await control.listBans(ROWS_MAX)).bans) bans.set(digest, ban);
  return bans;
}

/** Reads whether a client is a regular, and since when. */
async function regularOf(
  { client, address }: Visitor,
  rule: NonNullable<ReturnType<typeof regularsIn>>,
  control: Control,
) {
  const { days: within, keys, never } = rule;
  const { now, provenUntil } = await control.look(client, []);
  const history = await control.historyOf(client);
  const isNever = address !== null && never?.(address) === true;
  const days = history === null ? [] : daysOf(history).filter((day) => day > dayOf(now) - within);
  const isRegular = !isNever && provenUntil !== null && provenUntil > now && days.length + keys.length > 0;
  return {
    /** When it ceases to be one unless it comes back; ISO 8601; null if it is none. */
    until: isRegular ? isoTime(provenUntil) : null,
    /** The days with good replies that count, such as 2026-11-27, in their order. A proven key needs none. */
    days: days.map((day) => isoTime(day * DAY_MS).slice(0, 10)),
  };
}
export type ShownRegular = Awaited<ReturnType<typeof regularOf>>;
