/** Counts requests, in the metrics. */
import type { Outcome } from '#gateway/limiter/limiter.ts';
import type { Metrics } from '#gateway/observe/metrics/metrics.ts';
import { outcomeOf, reasonOf } from '#gateway/refusals/reasons.ts';
import type { LimitRefusal } from '#gateway/refusals/refusal.ts';
import type { Observer, RequestFacts } from '#gateway/request/events.ts';
import type { Clock } from '#shared/clock.ts';

export function requestMetrics(metrics: Metrics, clock: Clock): Observer {
  const countBody = ({ sentBody }: RequestFacts): void => {
    if (sentBody?.kind === 'unread') metrics.unreadBodies.value++;
  };
  return {
    spent(request) {
      if (request.storeMs === null) countDegraded(metrics, request);
      else metrics.storeTime.observe(request.storeMs);
    },
    passed(request) {
      const { allowed, allowedBy, passedAt } = request;
      metrics.requests.of(allowed === null ? 'uncovered' : 'allowed').value++;
      if (allowedBy !== null) metrics.listed.of('allow').value++;
      if (allowed !== null) countPolicies(metrics, request);
      countBody(request);
      metrics.decisionTime.observe((passedAt ?? clock()) - request.arrivedAt - request.bodyMs);
    },
    refused(request, refusal) {
      const { kind } = refusal;
      if (kind === 'unavailable' || kind === 'timeout') {
        metrics.replies.of('none').value++;
        return;
      }
      if (request.passedAt !== null) {
        metrics.replies.of('bound').value++;
        return;
      }
      metrics.requests.of(outcomeOf(reasonOf(refusal))).value++;
      countBody(request);
      if (kind === 'malformed' || kind === 'bound') return;
      metrics.decisionTime.observe(clock() - request.arrivedAt - request.bodyMs);
      if (kind === 'listed') metrics.listed.of('deny').value++;
      else if (kind === 'store') countDegraded(metrics, request);
      else if (kind === 'limit') countDenied(metrics, refusal);
    },
    left() {
      metrics.requests.of('undecided').value++;
    },
    replied(_request, { status, tookMs }) {
      metrics.upstreamTime.observe(tookMs);
      metrics.replies.of(`${Math.floor(status / 100)}xx`).value++;
    },
    settled(_request, outcomes) {
      // An unproven credential is also charged to its address, by the same policy.
      for (const outcome of outcomes) if (!outcome.bucket.counter.forUnproven) countUnits(metrics, outcome);
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
    const decision = shadowDenials.includes(policy) ? 'shadow_denied' : over;
    metrics.decisions.of(decision, policy.name).value++;
  }
}

function countDenied(metrics: Metrics, { violated, by }: LimitRefusal): void {
  if (by === 'memory') metrics.deniedFromMemory.value++;
  for (const { policy } of violated) metrics.decisions.of('denied', policy.name).value++;
}

/** Counts a decision that was made without the store, in the metrics of each policy. */
function countDegraded(metrics: Metrics, { charged }: RequestFacts): void {
  for (const { policy, counter } of charged?.charge.buckets ?? []) {
    if (counter.forUnproven) continue;
    // Show the other decisions too, even if the policy never makes one.
    metrics.decisions.of('allowed', policy.name);
    metrics.degraded.of(policy.name).value++;
  }
}

function countUnits(metrics: Metrics, { bucket, units, lacksUnits }: Outcome): void {
  const { name, cost } = bucket.policy;
  if (cost.kind !== 'reply-header' && cost.kind !== 'reply-bytes') return;
  metrics.units.of('reserved', name).value += bucket.cost;
  metrics.units.of('given_back', name).value += Math.max(0, bucket.cost - units);
  metrics.units.of('beyond', name).value += Math.max(0, units - bucket.cost);
  metrics.unitsMissing.of(name).value += lacksUnits ? 1 : 0;
}
