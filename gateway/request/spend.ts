/** Computes which buckets a request is charged to, and charges them. */
import type { CheckedHead } from '#gateway/http/request-head.ts';
import { presentedCredential } from '#gateway/identity/credential.ts';
import { chargeFor } from '#gateway/limiter/charge.ts';
import type { Violation } from '#gateway/limiter/decision.ts';
import type { LimitListener } from '#gateway/limiter/limiter.ts';
import { unitsOf } from '#gateway/limiter/units.ts';
import type { Cover } from '#gateway/policy/match.ts';
import type { OverrideFacts } from '#gateway/policy/overrides.ts';
import { planIn } from '#gateway/policy/plans.ts';
import { userAgentWords } from '#gateway/policy/user-agent.ts';
import type { Millis } from '#shared/clock.ts';
import type { Enforcement } from './enforcement.ts';
import type { Caller } from './reading/caller.ts';
import type { ChargedTo, KnownAs } from './reading/charged-to.ts';
import { type IdentifiableRequest, identify } from './reading/identify.ts';
import { isProven, type ProvableRequest } from './reading/prove.ts';

export interface ChargeableRequest extends IdentifiableRequest, ProvableRequest {
  readonly head: CheckedHead;
  /** The client's plan, if it is known without a header. */
  readonly plan?: string | undefined;
}

/** Receives the answer to a charge. */
export interface Spender extends LimitListener {
  /** Called if this process knows that counters are exhausted. The store was not asked. */
  denyFromMemory(violated: readonly Violation[]): void;
}

/** @returns the charge of a request; null if no policy counts it; a string with the reason for a refusal */
export function chargeOf(
  { options: { limiter } }: Enforcement,
  cover: Cover,
  request: ChargeableRequest,
): ChargedTo | null | string {
  const { caller, head, req } = request;
  const known = caller.charges?.get(cover);
  if (known !== undefined) return known;
  const identified = identify(cover, request);
  if (typeof identified === 'string') return identified;
  const facts = cover.hasOverrides ? overrideFactsOf(request, identified) : null;
  if (typeof facts === 'string') return facts;
  const charge = chargeFor(
    cover,
    identified,
    () => caller.identity(),
    (credential) => isProven(credential, request, limiter),
    facts,
    (counted, capacity) => unitsOf(counted, capacity, req.rawHeaders, head),
  );
  if (charge === null) return null;
  const charged = { charge, identified, hasOutcomes: cover.hasOutcomes, plan: facts?.plan ?? null };
  if (cover.isByAddress) caller.charges?.set(cover, charged);
  return charged;
}

/** Returns the facts that overrides depend on. @returns a string with the reason for a refusal */
function overrideFactsOf(
  { req, plan: known, caller }: ChargeableRequest,
  identified: KnownAs,
): OverrideFacts | string {
  const address = caller.address.bytes;
  const { planSources, set } = caller.table;
  const words = set.hasProgramLimits ? userAgentWords(req.rawHeaders) : [];
  const inFile = (): string | null =>
    set.plans === null ? null : planIn(set.plans, digestsOf(caller, identified), address);
  // Only a trusted proxy may name a plan, because a client would name the best one.
  if (known !== undefined || planSources.length === 0 || !caller.origin.trusted)
    return { address, plan: known ?? inFile(), words };
  const named = presentedCredential(req.rawHeaders, planSources);
  if (named.kind === 'ambiguous') return 'the request names two different plans';
  return { address, plan: named.kind === 'one' ? named.value : inFile(), words };
}

function* digestsOf(caller: Caller, { credentials, identities }: KnownAs): Iterable<string> {
  for (const { digest } of credentials) yield digest;
  for (const identity of identities) if (identity !== null) yield identity.digest;
  yield caller.identity().digest;
}

/** Charges the request. If a counter is known to be exhausted, the request is denied without asking the store. */
export function spend({ options }: Enforcement, { charge }: ChargedTo, request: Spender): void {
  const { metrics, limiter } = options;
  const exhausted = limiter.knownExhausted(charge);
  if (exhausted === null) {
    limiter.spend(charge, request);
    return;
  }
  metrics.deniedFromMemory++;
  request.denyFromMemory(
    exhausted.map(({ bucket, used, resetMs }) => {
      const { policy, capacity, limit: perWindow } = bucket;
      const told = { policy, quota: capacity, perWindow, remaining: 0, resetMs };
      return { ...told, bucket, used, limit: capacity, canNeverPass: false };
    }),
  );
}

/** Counts a decision that was made without the store, in the metrics of each policy. */
export function countDegraded(
  { metrics }: Enforcement,
  { charged, arrivedAt }: { readonly charged: ChargedTo | null; readonly arrivedAt: Millis },
): void {
  for (const { policy, counter } of charged?.charge.buckets ?? [])
    if (!counter.forUnproven) metrics.degraded(policy, arrivedAt);
}
