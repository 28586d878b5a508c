/** Policies with `newcomers`: learns who visits, counts newcomers, and ranks them behind regulars. */
import type { Lane } from '#gateway/bounds/priority.ts';
import type { Bucket } from '#gateway/limiter/charge.ts';
import type { Limiter } from '#gateway/limiter/limiter.ts';
import type { Metrics } from '#gateway/observe/metrics/metrics.ts';
import type { Observer, RequestFacts } from '#gateway/request/events.ts';
import { noteVisit } from '#gateway/request/reading/prove.ts';

type Counts = Pick<Metrics, 'visitors' | 'newcomersDenied'>;

export function newcomers({ visitors, newcomersDenied }: Counts, limiter: Limiter): Observer {
  return {
    passed(request) {
      const { allowed, allowedBy, match } = request;
      if (allowed?.shadowDenials.some(({ regulars }) => regulars !== null)) newcomersDenied.shadow++;
      if (match.cover === null || match.cover.regulars === null || allowedBy !== null) return;
      const { isCovered, isNewcomer } = visitorIn(request);
      if (isCovered) visitors[isNewcomer ? 'newcomer' : 'regular']++;
    },
    refused(_request, refusal) {
      if (refusal.kind === 'limit' && refusal.violated.some(({ policy }) => policy.regulars !== null))
        newcomersDenied.enforce++;
    },
    replied: (request, { status }) => noteVisit(limiter, request, status),
  };
}

/** Returns the order of an admitted request among those that wait for the application. */
export function rankOf(request: RequestFacts): Lane {
  const { cover } = request.match;
  const isNewcomer = cover !== null && cover.regulars !== null && visitorIn(request).isOneThatActs;
  return { priority: cover?.priority ?? 'normal', isNewcomer };
}

/** `isOneThatActs` is set if it is a newcomer for a policy that is not in shadow mode. */
function visitorIn({ match, charged, spent }: RequestFacts) {
  const found = { isCovered: false, isNewcomer: false, isOneThatActs: false };
  for (const { regulars, rollout, bucketId, mode } of match.cover?.policies ?? []) {
    if (regulars === null) continue;
    const counts = ({ policy }: Bucket): boolean => policy.bucketId === bucketId;
    const isCharged = charged?.charge.buckets.some(counts) === true;
    // The client may be outside the rollout.
    if (!isCharged && rollout !== null) continue;
    found.isCovered = true;
    // Some policies are not counted without the store. This process does not know their clients as regulars.
    const at = spent?.buckets.findIndex(counts) ?? -1;
    if (!isCharged || (at >= 0 && spent?.states[at] === null)) continue;
    found.isNewcomer = true;
    if (mode !== 'shadow') found.isOneThatActs = true;
  }
  return found;
}
