import type { Bounds } from '#gateway/bounds/bounds.ts';
import type { GuardedLimiter } from '#gateway/limiter/outage.ts';
import { counter, gauge, type Sample } from '#gateway/part/sample.ts';
import type { PolicySet } from '#gateway/policy/policy-set.ts';
import type { Upstream } from '#gateway/proxy/upstream.ts';
import { VERSION } from '#shared/version.ts';

/** The metrics of the core, without those of optional parts. */
export function coreSamples(
  upstream: Upstream,
  guarded: GuardedLimiter | null,
  decisions: { readonly unrecorded: number },
): Sample[] {
  const { waiting, unavailable, timeouts } = upstream;
  const failed = 'floodgate_upstream_failures_total';
  const samples = [
    ...processSamples(),
    ...boundSamples(upstream.bounds),
    gauge('floodgate_upstream_waiting', 'Requests that wait for an upstream connection.', waiting),
    counter(failed, 'Requests that the upstream did not answer.', unavailable, { kind: 'unavailable' }),
    counter(failed, 'Requests that the upstream did not answer.', timeouts, { kind: 'timeout' }),
    counter(
      'floodgate_decisions_unrecorded_total',
      'Refusals without a record, because there were too many.',
      decisions.unrecorded,
    ),
  ];
  if (guarded === null) return samples;
  const store = guarded.stats();
  samples.push(
    gauge('floodgate_store_unavailable', 'Processes that decide without the store.', store.available ? 0 : 1),
    counter('floodgate_store_outages_total', 'How often a process stopped asking the store.', store.outages),
    counter('floodgate_store_degraded_total', 'Requests decided without the store.', store.degraded),
  );
  for (const [kind, value] of Object.entries(store.failures)) {
    samples.push(
      counter('floodgate_store_failures_total', 'Checks that the store did not answer.', value, { kind }),
    );
  }
  return samples;
}

/** Tells which policies that count a group of clients act already. */
export function groupSamples({ policies }: Pick<PolicySet, 'policies'>): Sample[] {
  return policies.flatMap(({ name: policy, onlyFor }) => {
    if (onlyFor === null) return [];
    const { actsFrom, words } = onlyFor;
    const { name, help } = words.metrics.actsFrom;
    const value = actsFrom === 'unknown' ? -1 : (actsFrom ?? 0) / 1000;
    return { ...gauge(name, help, value, { policy }), aggregator: 'min' };
  });
}

function boundSamples(bounds: Bounds): Sample[] {
  return Object.values(bounds).flatMap((bound) => [
    gauge('floodgate_held', 'Resources that clients hold now, by bound.', bound.held, { bound: bound.name }),
    gauge('floodgate_held_max', 'Maximum that all clients together can hold, by bound.', bound.total, {
      bound: bound.name,
    }),
    ...Object.entries(bound.refusals).map(([scope, value]) =>
      counter(
        'floodgate_bound_refusals_total',
        'Refusals and losses of clients because a bound was reached.',
        value,
        { bound: bound.name, scope },
      ),
    ),
  ]);
}

/** Uses the names of Prometheus' own client libraries. */
function processSamples(): Sample[] {
  const { user, system } = process.cpuUsage();
  const { rss, heapUsed } = process.memoryUsage();
  return [
    {
      ...gauge('floodgate_build_info', 'Always 1; the labels are the versions.', 1, {
        version: VERSION,
        node: process.versions.node,
      }),
      aggregator: 'min',
    },
    counter('process_cpu_seconds_total', 'CPU time of all processes.', (user + system) / 1e6),
    gauge('process_resident_memory_bytes', 'Resident memory of all processes.', rss),
    gauge('nodejs_heap_size_used_bytes', 'Memory in use by objects.', heapUsed),
  ];
}
