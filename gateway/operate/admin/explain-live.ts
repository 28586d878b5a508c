/** `explain` with the counters of the running gateway. It charges nothing. */

import { EMPTY } from '#gateway/algorithms/algorithm.ts';
import { isClientRoute } from '#gateway/http/header-names.ts';
import type { Identity } from '#gateway/identity/digest.ts';
import type { Bucket } from '#gateway/limiter/charge.ts';
import type { Ban } from '#gateway/operate/control/bans.ts';
import type { Control } from '#gateway/operate/control/control.ts';
import type { PolicySet } from '#gateway/policy/policy-set.ts';
import { bannedReply } from '#gateway/reply/denial.ts';
import { headersOf, recordOf } from '#gateway/reply/own-reply.ts';
import type { Page } from '#gateway/reply/page.ts';
import { type Explanation, explain } from '#gateway/workbench/rehearsal/explain.ts';
import { Rehearsal, type RehearsedRequest } from '#gateway/workbench/rehearsal/rehearsal.ts';
import type { ProxyTrust } from '#shared/client-address.ts';
import { type Clock, isoTime, type Millis } from '#shared/clock.ts';

interface LiveExplainOptions {
  readonly set: PolicySet;
  readonly trust: ProxyTrust;
  readonly control: Control;
  readonly clock: Clock;
}

export async function explainLive(
  request: RehearsedRequest,
  { set, trust, control, clock }: LiveExplainOptions,
): Promise<Explanation> {
  let now = clock();
  let ban: Ban | null = null;
  const rehearsal = new Rehearsal(set, { clock: () => now, trust, salt: await control.salt() });
  const explanation = await explain(set, rehearsal, request, async () => {
    let read = rehearsal.read(request);
    if (read.kind === 'malformed') return;
    if (await seedBans(rehearsal, read.identities(), control)) read = rehearsal.read(request);
    ban = 'ban' in read && read.ban !== null ? rehearsal.bans.of(read.ban.digest, now) : null;
    if (read.kind === 'covered') now = await seed(rehearsal, read.charged.charge.buckets, control);
  });
  return ban === null ? explanation : bannedExplanation(explanation, ban, now, rehearsal.pageFor(request));
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
    );
    now = look.now;
    if (look.provenUntil !== null) rehearsal.known.prove(identity, look.provenUntil);
    for (const { proof } of same) {
      if (proof.digest === identity.digest) continue;
      const { provenUntil } = await control.look(proof, []);
      if (provenUntil !== null) rehearsal.known.prove(proof, provenUntil);
    }
    for (const [i, bucket] of same.entries()) {
      const state = look.states[i] ?? EMPTY;
      if (bucket.policy.algorithm !== 'concurrency') rehearsal.known.set(bucket, state);
      else
        for (let k = 0; k < state.a; k++)
          rehearsal.known.leases.take({ key: bucket.key, member: `${k}` }, now);
    }
  }
  return now;
}

/** @returns whether there are any; then the proven identities are known too */
async function seedBans(
  rehearsal: Rehearsal,
  identities: readonly Identity[],
  control: Control,
): Promise<boolean> {
  for (const identity of identities) {
    const ban = await control.banOf(identity);
    if (ban !== null) rehearsal.bans.set(identity.digest, ban);
  }
  if (rehearsal.bans.size === 0) return false;
  for (const identity of identities) {
    const { provenUntil } = await control.look(identity, []);
    if (provenUntil !== null) rehearsal.known.prove(identity, provenUntil);
  }
  return true;
}

function bannedExplanation(
  explanation: Explanation,
  { endsAt, reason }: Ban,
  now: Millis,
  page: Page | null,
): Explanation {
  const reply = bannedReply(endsAt - now, {
    cors: isClientRoute(explanation.path),
    close: false,
    decision: null,
    page,
  });
  const why = reason === '' ? '' : `: ${reason}`;
  return {
    ...explanation,
    decision: 'deny',
    status: 429,
    headers: recordOf(headersOf(reply)),
    reason: `the client is banned until ${isoTime(endsAt)}${why}`,
  };
}
