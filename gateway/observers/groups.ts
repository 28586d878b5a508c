/** Tells groups of clients of replies, counts their requests, and ranks their calls behind others. */
import type { Lane } from '#gateway/bounds/priority.ts';
import type { Bucket } from '#gateway/limiter/charge.ts';
import type { Limiter } from '#gateway/limiter/limiter.ts';
import type { Metrics } from '#gateway/observe/metrics/metrics.ts';
import type { GroupWords } from '#gateway/policy/groups.ts';
import type { Policy } from '#gateway/policy/policy.ts';
import type { Observer, RequestFacts } from '#gateway/request/events.ts';
import { tellGroups } from '#gateway/request/reading/prove.ts';

type Counts = Pick<Metrics, 'groups'>;

export function groups(metrics: Counts, limiter: Limiter): Observer {
  /** Counts a request once for each group whose limits deny it. */
  const countDenied = (denying: readonly Policy[], mode: 'enforce' | 'shadow'): void => {
    for (const { words, denied } of metrics.groups)
      if (denying.some(({ onlyFor }) => onlyFor?.words === words)) denied.of(mode).value++;
  };
  return {
    passed(request) {
      const { allowed, allowedBy, match } = request;
      if (allowed !== null) countDenied(allowed.shadowDenials, 'shadow');
      if (allowedBy !== null) return;
      for (const { words } of match.cover?.groups ?? []) {
        const { isCovered, isInside } = placeIn(words, request);
        const { inside, outside } = words.metrics.visitors;
        const counted = metrics.groups.find((one) => one.words === words);
        if (isCovered && counted !== undefined) counted.visitors.of(isInside ? inside : outside).value++;
      }
    },
    refused(_request, refusal) {
      if (refusal.kind !== 'limit') return;
      countDenied(
        refusal.violated.map(({ policy }) => policy),
        'enforce',
      );
    },
    replied: (request, { status }) => tellGroups(limiter, request, status),
  };
}

/** Returns the order of an admitted request among those that wait for the application. */
export function rankOf(request: RequestFacts): Lane {
  const { cover } = request.match;
  const acting = cover?.groups.find(({ words }) => placeIn(words, request).isOneThatActs);
  return { priority: cover?.priority ?? 'normal', isBehind: acting !== undefined, as: acting?.words.one };
}

/** `isOneThatActs` is set if it is in the group for a policy that is not in shadow mode. */
function placeIn(words: GroupWords, { match, charged, spent }: RequestFacts) {
  const found = { isCovered: false, isInside: false, isOneThatActs: false };
  for (const { onlyFor, rollout, bucketId, mode } of match.cover?.policies ?? []) {
    if (onlyFor?.words !== words) continue;
    const counts = ({ policy }: Bucket): boolean => policy.bucketId === bucketId;
    const isCharged = charged?.charge.buckets.some(counts) === true;
    // The client may be outside the rollout.
    if (!isCharged && rollout !== null) continue;
    found.isCovered = true;
    // Some policies are not counted without the store. This process does not know that their clients are outside.
    const at = spent?.buckets.findIndex(counts) ?? -1;
    if (!isCharged || (at >= 0 && spent?.states[at] === null)) continue;
    found.isInside = true;
    if (mode !== 'shadow') found.isOneThatActs = true;
  }
  return found;
}
