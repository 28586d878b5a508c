import type { Bounds } from '#gateway/bounds/bounds.ts';
import { PRIORITIES } from '#gateway/bounds/priority.ts';
import type { GuardedLimiter } from '#gateway/limiter/outage.ts';
import type { AccessLog } from '#gateway/observe/access-log/access-log.ts';
import { counter, gauge, type Sample } from '#gateway/observe/metrics/metrics.ts';
import type { Upstream } from '#gateway/proxy/upstream.ts';

/** The metrics of a public server. */
interface CountingServer {
  readonly watch: { readonly unreadCut: number; readonly silentCut: number };
  readonly smallPieces: { readonly cut: number };
}

function sumOf(servers: readonly CountingServer[], cut: 'unreadCut' | 'silentCut'): number {
  return servers.reduce((sum, { watch }) => sum + watch[cut], 0);
}

const CUT = 'floodgate_connections_cut_total';
const CUT_HELP = 'Client connections that the gateway cut.';

export function partSamples(
  servers: readonly CountingServer[],
  upstream: Upstream,
  guarded: GuardedLimiter | null,
  decisions: { readonly unrecorded: number },
  accessLog: AccessLog | null,
): Sample[] {
  const { waiting, unavailable, timeouts } = upstream.stats();
  const failed = 'floodgate_upstream_failures_total';
  const samples = [
    ...processSamples(),
    ...boundSamples(upstream.bounds),
    ...protectSamples(upstream),
    counter(CUT, CUT_HELP, sumOf(servers, 'unreadCut'), { reason: 'unread reply' }),
    counter(CUT, CUT_HELP, sumOf(servers, 'silentCut'), { reason: 'slow body' }),
    counter(
      CUT,
      CUT_HELP,
      servers.reduce((sum, { smallPieces }) => sum + smallPieces.cut, 0),
      { reason: 'small pieces' },
    ),
    gauge('floodgate_upstream_waiting', 'Requests that wait for an upstream connection.', waiting),
    counter(failed, 'Requests that the upstream did not answer.', unavailable, { kind: 'unavailable' }),
    counter(failed, 'Requests that the upstream did not answer.', timeouts, { kind: 'timeout' }),
    counter(
      'floodgate_decisions_unrecorded_total',
      'Refusals without a record, because there were too many.',
      decisions.unrecorded,
    ),
    counter(
      'floodgate_access_log_lost_total',
      'Lines of the access log that were lost.',
      accessLog?.lost ?? 0,
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

function protectSamples({ protection, requests }: Upstream): Sample[] {
  if (protection === null) return [];
  const { mode, limit, refused } = protection;
  return [
    gauge('floodgate_protect_limit', 'The adaptive limit of requests in progress at the application.', limit),
    ...PRIORITIES.flatMap((priority) => [
      gauge('floodgate_protect_waiting', 'Requests that wait for a place.', requests.waitingOf(priority), {
        priority,
      }),
      counter(
        'floodgate_protect_refused_total',
        'Requests refused to protect the application; in shadow mode, those that arrived at the limit.',
        refused[priority],
        { priority, mode },
      ),
    ]),
  ];
}

/** Uses the names of Prometheus' own client libraries. */
function processSamples(): Sample[] {
  const { user, system } = process.cpuUsage();
  const { rss, heapUsed } = process.memoryUsage();
  return [
    counter('process_cpu_seconds_total', 'CPU time of all processes.', (user + system) / 1e6),
    gauge('process_resident_memory_bytes', 'Resident memory of all processes.', rss),
    gauge('nodejs_heap_size_used_bytes', 'Memory in use by objects.', heapUsed),
  ];
}
