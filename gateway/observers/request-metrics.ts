/** Counts requests, in the metrics. */
import type { Metrics } from '#gateway/observe/metrics/metrics.ts';
import { kindOf, type LimitRefusal } from '#gateway/refusals/refusal.ts';
import type { Observer, RequestFacts } from '#gateway/request/events.ts';
import type { Clock } from '#shared/clock.ts';

export function requestMetrics(metrics: Metrics, clock: Clock): Observer {
  const countBody = ({ sentBody }: RequestFacts): void => {
    if (sentBody?.kind === 'unread') metrics.unreadBodies++;
  };
  return {
    spent(request) {
      if (request.storeMs === null) countDegraded(metrics, request);
      else metrics.storeAnswered(request.storeMs);
    },
    passed(request) {
      const { allowed, allowedBy, passedAt } = request;
      metrics.count(allowed === null ? 'uncovered' : 'allowed');
      if (allowedBy !== null) metrics.listed.allow++;
      if (allowed !== null) countPolicies(metrics, request);
      countBody(request);
      metrics.decided((passedAt ?? clock()) - request.arrivedAt - request.bodyMs);
    },
    refused(request, refusal) {
      const { kind } = refusal;
      if (kind === 'unavailable' || kind === 'timeout') {
        metrics.replied('none');
        return;
      }
      if (request.passedAt !== null) {
        metrics.replied('bound');
        return;
      }
      metrics.count(kindOf(refusal).reason(refusal).outcome ?? 'undecided');
      countBody(request);
      if (kind === 'malformed' || kind === 'bound') return;
      metrics.decided(clock() - request.arrivedAt - request.bodyMs);
      if (kind === 'listed') metrics.listed.deny++;
      else if (kind === 'store') countDegraded(metrics, request);
      else if (kind === 'limit') countDenied(metrics, refusal);
    },
    left: () => metrics.count('undecided'),
    replied(_request, { status, tookMs }) {
      metrics.upstreamTime.observe(tookMs);
      metrics.replied(status);
    },
    settled(_request, outcomes) {
      for (const { bucket, units, lacksUnits } of outcomes) {
        const { policy, cost, counter } = bucket;
        // An unproven credential is also charged to its address, by the same policy.
        if (counter.forUnproven) continue;
        if (policy.cost.kind === 'reply-header' || policy.cost.kind === 'reply-bytes')
          metrics.settled(policy, cost, units, lacksUnits);
      }
    },
  };
}

/** Counts an admitted request once for each policy that has counted it. */
function countPolicies(metrics: Metrics, { spent, allowed }: RequestFacts): void {
  if (spent === null || allowed === null) return;
  const { buckets, states } = spent;
  const { shadowDenials, marks } = allowed;
  for (let i = 0; i < buckets.length; i++) {
    const bucket = buckets[i];
    if (bucket === undefined || bucket.counter.forUnproven || states[i] === null) continue;
    const { policy } = bucket;
    const over = marks.includes(policy) ? 'marked' : 'allowed';
    metrics.countPolicy(policy, shadowDenials.includes(policy) ? 'shadowDenied' : over);
  }
}

function countDenied(metrics: Metrics, { violated, by }: LimitRefusal): void {
  if (by === 'memory') metrics.deniedFromMemory++;
  for (const { policy } of violated) metrics.countPolicy(policy, 'denied');
}

/** Counts a decision that was made without the store, in the metrics of each policy. */
function countDegraded(metrics: Metrics, { charged }: RequestFacts): void {
  for (const { policy, counter } of charged?.charge.buckets ?? [])
    if (!counter.forUnproven) metrics.degraded(policy);
}
