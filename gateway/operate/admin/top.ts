/** One snapshot of the gateway's activity: totals since its start. Two snapshots give rates. */

import { mergeRanked, type Ranked, rankedSince } from '#gateway/observe/metrics/ranking.ts';
import type { ProcessReport } from '#gateway/process/supervisor.ts';
import { EXCHANGED_MAX } from '#gateway/refusals/decision-record.ts';
import { isoTime, type Millis } from '#shared/clock.ts';
import type { AdminGateway } from './context.ts';
import { groupTotals } from './groups.ts';
import { policyTotalsOf, totalsBy } from './totals.ts';

export type TopSource = Pick<AdminGateway, 'storeKind' | 'processes' | 'exchangeDenied' | 'families'>;

const LIMITED_MAX = 20;
/** A process that has failed in this time knows that an outage of the application lasts. */
const UNKNOWN_MS: Millis = 60_000;

/** @param startedAt when this gateway began to count */
export async function topSnapshot(source: TopSource, now: Millis, startedAt: Millis) {
  const [processes, families] = await Promise.all([source.processes(), source.families()]);
  const others = await source.exchangeDenied(deniedHere(processes)).catch(() => null);
  return {
    at: isoTime(now),
    /** Number of processes of this gateway. */
    processes: processes.length,
    store: storeState(source.storeKind, processes),
    requests: totalsBy('outcome', families, 'floodgate_requests_total'),
    policies: policyTotalsOf(families),
    ...groupTotals(families),
    ...mostLimited(processes, others, now, startedAt),
  };
}
export type TopSnapshot = Awaited<ReturnType<typeof topSnapshot>>;

export function storeState(kind: AdminGateway['storeKind'], processes: readonly ProcessReport[]) {
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
export function deniedHere(processes: readonly ProcessReport[]): Ranked[] {
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
