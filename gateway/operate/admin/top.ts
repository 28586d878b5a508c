/** A snapshot tells the state of the gateway at the moment, and totals since its start. Two snapshots give rates. */
import type { Family } from '#gateway/observe/metrics/exposition.ts';
import { mergeRanked, type Ranked, rankedSince } from '#gateway/observe/metrics/ranking.ts';
import { NEWCOMERS } from '#gateway/policy/groups.ts';
import type { ProcessReport } from '#gateway/process/supervisor.ts';
import { EXCHANGED_MAX } from '#gateway/refusals/decision-record.ts';
import { isoTime, type Millis } from '#shared/clock.ts';
import { within } from '#shared/within.ts';
import type { AdminGateway } from './context.ts';

export type TopSource = Pick<AdminGateway, 'storeKind' | 'processes' | 'exchangeDenied' | 'families'>;
type Processes = readonly (readonly Family[])[];
type Labels = Readonly<Record<string, string>>;

const LIMITED_MAX = 20;
/** A store that hangs delays a snapshot by this time. A page takes a gateway that is silent for five seconds for gone. */
export const ASK_MS: Millis = 2000;
/** A process that has failed in this time knows that an outage of the application lasts. */
const UNKNOWN_MS: Millis = 60_000;
const { visitors, denied: denials, actsFrom: acting } = NEWCOMERS.metrics;
const BEHIND = { client: visitors.inside };

/** @param startedAt when this gateway began to count */
export async function takeSnapshot(source: TopSource, now: Millis, startedAt: Millis) {
  const [processes, families] = await Promise.all([source.processes(), source.families()]);
  const others = await within(ASK_MS, source.exchangeDenied(deniedHere(processes))).catch(() => null);
  const snapshot = {
    at: isoTime(now),
    /** Number of processes of this gateway. */
    processes: processes.length,
    store: storeState(source.storeKind, processes),
    applicationAway: applicationAway(processes, now),
    ...totalsOf(families),
    newcomers: newcomersOf(families),
    ...mostLimited(processes, others, now, startedAt),
  };
  return { families, snapshot };
}

/** The reply of `GET /api/top`. */
export async function topSnapshot(source: TopSource, now: Millis, startedAt: Millis) {
  const { families, snapshot } = await takeSnapshot(source, now, startedAt);
  const requests = totalsBy('outcome', families, 'floodgate_requests_total');
  return { ...snapshot, requests, policies: policyTotalsOf(families) };
}
export type TopSnapshot = Awaited<ReturnType<typeof topSnapshot>>;

function storeState(kind: AdminGateway['storeKind'], processes: readonly ProcessReport[]) {
  const away = processes.flatMap(({ storeOutage }) => (storeOutage?.to === null ? storeOutage.from : []));
  return {
    kind,
    available: processes.every(({ storeAvailable }) => storeAvailable),
    /** When the first of the processes began to decide without the store; ISO 8601; null if none does. */
    awaySince: away.length === 0 ? null : isoTime(Math.min(...away)),
    /** Number of processes of this gateway that decide without the store. */
    processesWithout: away.length,
    /** Processes that share the store, on all machines. */
    replicas: replicasOf(processes),
  };
}

function replicasOf(processes: readonly ProcessReport[]): number {
  return Math.max(1, ...processes.map(({ replicas }) => replicas));
}

/** When the first of the processes noticed that the application does not answer, and why; null if it answers. */
export function applicationAway(processes: readonly ProcessReport[], now: Millis) {
  const lasting = processes.flatMap(({ upstreamOutage }) =>
    upstreamOutage?.to === null ? upstreamOutage : [],
  );
  const isForAll = lasting.length === processes.length;
  // A process without requests does not learn that the application answers the other ones again.
  const known = lasting.filter(({ failedAt }) => isForAll || now - failedAt <= UNKNOWN_MS);
  const [first] = known.toSorted((a, b) => a.from - b.from);
  return first === undefined ? null : { since: isoTime(first.from), reason: first.reason };
}

/** Merges the lists of all processes of this gateway of clients denied most often, in descending order. */
function deniedHere(processes: readonly ProcessReport[]): Ranked[] {
  return mergeRanked(processes.map(({ limited }) => limited));
}

/**
 * @param others the lists of the other gateways; null if they are unknown
 * @param startedAt when this gateway began to count
 */
export function mostLimited(
  processes: readonly ProcessReport[],
  others: readonly (readonly Ranked[])[] | null,
  now: Millis,
  startedAt: Millis,
) {
  // What happened before the start is lost, unless another gateway tells of it.
  const since = Math.max(rankedSince(now), replicasOf(processes) > processes.length ? 0 : startedAt);
  // A gateway that has ended may have left older denials.
  const merged = mergeRanked([deniedHere(processes), ...(others ?? [])], EXCHANGED_MAX)
    .filter(({ lastAt }) => lastAt >= rankedSince(now))
    .slice(0, LIMITED_MAX);
  return {
    /** Whether `limited` has the denials of all gateways. Without the store it has those of this one. */
    isLimitedOfAll: others !== null,
    limited: merged.map(({ name, count, isExact, other, label, lastAt }) => ({
      identity: name,
      /** A lower bound if it is not exact, see Ranking. */
      denied: count,
      isExact,
      /** Requests that a process admitted after it had denied the client. */
      admitted: other,
      /** The policy that denied it last. */
      policy: label,
      /** Time of its last denial. */
      lastAt: isoTime(lastAt),
    })),
    /** Start of the time that `limited` covers. */
    limitedSince: isoTime(since),
  };
}

/** Figures of the store, the application and the protection. */
function totalsOf(processes: Processes) {
  const totalOf = (name: string): number => sumOf(valuesOf(processes, name));
  const [refused] = valuesOf(processes, 'floodgate_protect_refused_total');
  return {
    /** Checks that the store did not answer. */
    storeFailures: totalsBy('kind', processes, 'floodgate_store_failures_total'),
    /** Requests that the upstream did not answer. */
    upstreamFailures: totalsBy('kind', processes, 'floodgate_upstream_failures_total'),
    /** null without `protect` in the policy file */
    protection:
      refused === undefined
        ? null
        : {
            mode: refused.labels.mode ?? '',
            /** Current limit of requests in progress at the application. */
            limit: totalOf('floodgate_protect_limit'),
            waiting: totalOf('floodgate_protect_waiting'),
            refused: totalOf('floodgate_protect_refused_total'),
          },
  };
}

/** Requests on routes of policies with `newcomers`, each counted once; null without any. */
export function newcomersOf(processes: Processes) {
  const from = valuesOf(processes, acting.name);
  if (from.length === 0) return null;
  const actsFrom = Math.max(...from.map(({ value }) => value));
  const { [visitors.outside]: regulars = 0, [visitors.inside]: newcomers = 0 } = totalsBy(
    'client',
    processes,
    visitors.name,
  );
  const { enforce: denied = 0, shadow: shadowDenied = 0 } = totalsBy('mode', processes, denials.name);
  return {
    /** Admitted requests of regulars, and of newcomers. */
    regulars,
    newcomers,
    denied,
    /** Admitted requests that a limit would have denied. */
    shadowDenied,
    /** With `protect`: newcomers that wait for a place, and those that were admitted and then refused. */
    waiting: sumOf(valuesOf(processes, 'floodgate_protect_waiting', BEHIND)),
    overloaded: sumOf(valuesOf(processes, 'floodgate_protect_refused_total', { ...BEHIND, mode: 'on' })),
    /** Whether the limit denies anybody, unless it is in shadow mode. */
    acts: actsFrom === 0,
    /** When it begins to act; ISO 8601; null if it acts, or if the store was not reached yet. */
    actsFrom: actsFrom > 0 ? isoTime(actsFrom * 1000) : null,
  };
}

/** `marked` are over the limit and passed; `degraded` were decided without the store. */
function policyTotalsOf(processes: Processes) {
  const decisions = valuesOf(processes, 'floodgate_policy_decisions_total');
  const byPolicy = Map.groupBy(decisions, ({ labels }) => labels.policy ?? '');
  const degraded = totalsBy('policy', processes, 'floodgate_policy_degraded_total');
  const names = new Set([...byPolicy.keys(), ...Object.keys(degraded)]);
  return [...names].sort().map((policy) => {
    const by: Record<string, number> = {};
    for (const { labels, value } of byPolicy.get(policy) ?? []) addTo(by, labels.decision, value);
    const { allowed = 0, denied = 0, shadow_denied: shadowDenied = 0, marked = 0 } = by;
    return { policy, allowed, denied, shadowDenied, marked, degraded: degraded[policy] ?? 0 };
  });
}

/** Returns the sums of a metric by one of its labels. */
function totalsBy(label: string, processes: Processes, name: string): Record<string, number> {
  const totals: Record<string, number> = {};
  for (const { labels, value } of valuesOf(processes, name)) addTo(totals, labels[label], value);
  return totals;
}

function valuesOf(processes: Processes, name: string, labels: Labels = {}): Family['values'] {
  const wanted = Object.entries(labels);
  return processes
    .flat()
    .flatMap((family) => (family.name === name ? family.values : []))
    .filter((one) => wanted.every(([label, value]) => one.labels[label] === value));
}

function sumOf(values: Family['values']): number {
  return values.reduce((sum, { value }) => sum + value, 0);
}

function addTo(record: Record<string, number>, name = '', value: number): void {
  record[name] = (record[name] ?? 0) + value;
}
