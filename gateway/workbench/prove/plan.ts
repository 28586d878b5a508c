/** Decides which policies can be tested from outside, and with which request. */
import { partsOf, readsBody } from '#gateway/identity/identifier.ts';
import type { Policy, PolicySet } from '#gateway/policy/policy.ts';
import { type SampleRequest, sampleRequest } from '#gateway/workbench/rehearsal/sample-request.ts';
import { REQUESTS_PER_SECOND } from './prove-policy.ts';

const SAFE = ['HEAD', 'GET'] as const;
const ALL = [...SAFE, 'POST', 'PUT', 'PATCH', 'DELETE'] as const;

/** A token bucket that refills faster cannot be emptied. The value is a quarter of the requests sent per second. */
const REFILL_MAX = REQUESTS_PER_SECOND / 4;
/** Maximum number of connections of one client, each with a request in flight. */
const IN_FLIGHT_MAX = 100;

export interface Planned {
  readonly policy: Policy;
  readonly request: SampleRequest;
}

interface PlanOptions {
  /** Whether to test policies with methods that may change data. */
  readonly allMethods: boolean;
  /** Policies with a larger limit are skipped. */
  readonly limitMax: number;
}

interface ProofPlan {
  readonly planned: readonly Planned[];
  readonly skipped: readonly { readonly policy: string; readonly reason: string }[];
}

export function planProof(set: PolicySet, { allMethods, limitMax }: PlanOptions): ProofPlan {
  const planned: Planned[] = [];
  const skipped: ProofPlan['skipped'][number][] = [];
  for (const policy of set.policies) {
    const request =
      policy.capacity > limitMax ? null : sampleRequest(set, policy, allMethods ? ALL : SAFE, 'prove');
    const reason = reasonToSkip(set, policy, request, limitMax, allMethods);
    if (reason !== null) skipped.push({ policy: policy.name, reason });
    else if (request !== null) planned.push({ policy, request });
  }
  return { planned, skipped };
}

function reasonToSkip(
  { policies }: PolicySet,
  policy: Policy,
  request: SampleRequest | null,
  limitMax: number,
  allMethods: boolean,
): string | null {
  const { mode, limit, capacity, algorithm, cost, count, bucketId, index } = policy;
  const { identifier, rollout, windowSeconds, route } = policy;
  const { methods } = route;
  if (mode === 'shadow') return 'it is in shadow mode and never denies';
  if (identifier.kind === 'everyone')
    return 'it counts everyone together, so the proof would deny your clients';
  if (algorithm === 'token-bucket' && limit / windowSeconds > REFILL_MAX)
    return `it gets back ${Math.round(limit / windowSeconds)} a second, faster than it can be used up from here`;
  if (algorithm === 'concurrency' && limit > IN_FLIGHT_MAX)
    return `it allows ${limit} requests in flight, and a gateway may refuse one client that many connections`;
  if (cost.kind !== 'units' || cost.units !== 1) return 'its requests cost more than one each';
  if (count !== 'request') return `it counts only each ${count}, which the application decides`;
  if (capacity > limitMax) return `its limit is above --limit-max ${limitMax}`;
  if (bucketId !== index) return `it shares the counter of ${policies[bucketId]?.name}`;
  if (rollout !== null) return `it counts ${rollout.percent}% of all clients only`;
  if (request !== null) return null;
  if (partsOf(identifier).some(({ kind }) => kind === 'token')) return 'it counts signed tokens';
  if (readsBody(identifier)) return 'it counts a field of the body';
  if (!allMethods && methods !== null && !methods.has('GET'))
    return 'its methods may change data; add --all-methods';
  return 'another policy denies all of its requests earlier';
}

/** Returns how many requests may be sent at once without a denial by any policy. */
export function inFlightMaxOf({ policies }: PolicySet): number {
  const limits = policies
    .filter(({ algorithm, mode }) => algorithm === 'concurrency' && mode === 'enforce')
    .map(({ limit }) => limit);
  return Math.min(...limits, Number.MAX_SAFE_INTEGER);
}
