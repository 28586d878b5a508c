/** `explain` with the counters of the running gateway. It charges nothing. */

import { EMPTY } from '#gateway/algorithms/algorithm.ts';
import type { Bans } from '#gateway/bans/bans.ts';
import type { Control } from '#gateway/bans/control.ts';
import { Digester } from '#gateway/identity/digest.ts';
import { EVERYONE } from '#gateway/identity/identifier.ts';
import type { Bucket } from '#gateway/limiter/charge.ts';
import type { PolicySet } from '#gateway/policy/policy-set.ts';
import { regularsIn, whileLearning } from '#gateway/policy/regulars.ts';
import { recordOf } from '#gateway/reply/own-reply.ts';
import { identitiesOf } from '#gateway/request/reading/listing.ts';
import { type Explanation, explain } from '#gateway/workbench/rehearsal/explain.ts';
import {
  type LocatedRequest,
  Rehearsal,
  type RehearsedRequest,
} from '#gateway/workbench/rehearsal/rehearsal.ts';
import { replyTo } from '#gateway/workbench/rehearsal/rehearsed.ts';
import { isoTime, type Millis } from '#shared/clock.ts';
import type { AdminContext } from './context.ts';
import { bansOf } from './inspect.ts';

export async function explainLive(
  request: RehearsedRequest,
  loaded: PolicySet,
  { trust, control, clock }: Pick<AdminContext, 'trust' | 'control' | 'clock'>,
): Promise<Explanation> {
  let now = clock();
  const salt = await control.salt();
  const set = await asTheyApply(loaded, salt, control, now);
  const rehearsal = new Rehearsal(set, { clock: () => now, trust, salt });
  const located = rehearsal.locate(request);
  if (located.kind === 'malformed') return explain(set, rehearsal, request);
  const bans = await copyBans(rehearsal, located, control);
  const banned = rehearsal.read(located, bans);
  // The policies are explained as they apply when the ban has ended.
  const whole = rehearsal.read(located);
  const reading = whole.kind === 'malformed' ? rehearsal.readWithoutBody(located) : whole;
  if (reading.kind === 'charged') now = await seed(rehearsal, reading.charge.buckets, control);
  const explanation = explain(set, rehearsal, request);
  if (banned.kind !== 'banned') return explanation;
  const { status, headers } = replyTo(
    { ...banned, match: located.match, request: located },
    now,
    rehearsal.askingOf(request),
  );
  const ban = bans.of(banned.identity.digest, now) ?? bans.onAddress(located.caller.address.bytes, now);
  const reason = ban?.reason ?? '';
  return {
    ...explanation,
    decision: 'deny',
    status,
    headers: recordOf(headers),
    reason: `the client is banned until ${isoTime(banned.endsAt)}${reason === '' ? '' : `: ${reason}`}`,
  };
}

/** Returns the policies as the gateway applies them while nobody can be a regular. */
async function asTheyApply(set: PolicySet, salt: string, control: Control, now: Millis): Promise<PolicySet> {
  if (regularsIn(set) === null) return set;
  const { digest } = new Digester(salt).identify(EVERYONE, '');
  return whileLearning(set, await control.historySince(digest), now);
}

/** @returns the clock that the counters use */
async function seed(rehearsal: Rehearsal, buckets: readonly Bucket[], control: Control): Promise<Millis> {
  let now: Millis = 0;
  const byIdentity = Map.groupBy(buckets, ({ identity }) => identity.digest);
  for (const same of byIdentity.values()) {
    const identity = same[0]?.identity;
    if (identity === undefined) continue;
    const look = await control.look(
      identity,
      same.map(({ counter }) => counter),
      same.map(({ limit }) => limit),
      same.map(({ value }) => value),
    );
    now = look.now;
    for (const one of same.flatMap(({ unlessProven }) => unlessProven)) {
      const { provenUntil } = await control.look(one, []);
      if (provenUntil !== null) rehearsal.known.proofs.prove(one, provenUntil);
    }
    for (const [i, bucket] of same.entries()) {
      const state = look.states[i] ?? EMPTY;
      if (look.used[i]) rehearsal.known.use(bucket, now);
      if (!bucket.algorithm.isHeld) rehearsal.known.set(bucket, state);
      else
        for (let k = 0; k < state.a; k++)
          rehearsal.known.leases.take({ key: bucket.key, member: `${k}` }, now);
    }
  }
  return now;
}

/** Copies the bans of a request. If there are any, the proofs that they depend on are copied too. */
async function copyBans(rehearsal: Rehearsal, located: LocatedRequest, control: Control): Promise<Bans> {
  const bans = await bansOf(control);
  if (bans.size === 0) return bans;
  const presented = identitiesOf(located);
  const identities = typeof presented === 'string' ? [] : [...presented.certain, ...presented.doubtful];
  for (const identity of identities) {
    const { provenUntil } = await control.look(identity, []);
    if (provenUntil !== null) rehearsal.known.proofs.prove(identity, provenUntil);
  }
  return bans;
}
