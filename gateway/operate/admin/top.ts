/** One snapshot of the gateway's activity: totals since its start. Two snapshots give rates. */

import { mergeRanked, type Ranked, rankedSince } from '#gateway/observe/metrics/ranking.ts';
import type { ProcessReport } from '#gateway/process/supervisor.ts';
import { EXCHANGED_MAX } from '#gateway/refusals/decision-record.ts';
import { isoTime, type Millis } from '#shared/clock.ts';
import type { AdminGateway } from './context.ts';
import { type NewcomersTotals, newcomersOf, type PolicyTotals, policyTotalsOf, totalsBy } from './totals.ts';

export type TopSource = Pick<AdminGateway, 'storeKind' | 'processes' | 'exchangeDenied' | 'families'>;

export interface TopSnapshot {
  readonly at: string;
  /** Number of processes of this gateway. */
  readonly processes: number;
  readonly store: StoreState;
  readonly requests: Readonly<Record<string, number>>;
  readonly policies: readonly PolicyTotals[];
  /** null without `newcomers` in the policy file. */
  readonly newcomers: NewcomersTotals | null;
  readonly limited: readonly LimitedClient[];
  /** Whether `limited` has the denials of all gateways. Without the store it has those of this one. */
  readonly isLimitedOfAll: boolean;
  readonly paths: readonly RequestedPath[];
  /** Start of the time that `limited` and `paths` cover; ISO 8601. */
  readonly limitedSince: string;
}

/** One of the clients denied most often, with the policy that denied it last. */
interface LimitedClient {
  readonly identity: string;
  /** A lower bound if it is not exact, see Ranking. */
  readonly denied: number;
  readonly isExact: boolean;
  /** Number of its requests that were admitted since it is in the table. */
  readonly admitted: number;
  readonly policy: string;
  /** Time of its last denial; ISO 8601. */
  readonly lastAt: string;
}

/** One of the paths requested most often. */
interface RequestedPath {
  readonly path: string;
  /** A lower bound if it is not exact, see Ranking. */
  readonly requests: number;
  readonly isExact: boolean;
  readonly refused: number;
}

interface StoreState {
  readonly kind: 'redis' | 'memory';
  readonly available: boolean;
  /** When the first of the processes began to decide without the store; ISO 8601; null if none does. */
  readonly awaySince: string | null;
  /** Number of processes of this gateway that decide without the store. */
  readonly processesWithout: number;
  /** Number of processes that share the store, on all machines. */
  readonly replicas: number;
}

const LIMITED_MAX = 20;
const PATHS_MAX = 10;

export async function topSnapshot(source: TopSource, now: number): Promise<TopSnapshot> {
  const [processes, families] = await Promise.all([source.processes(), source.families()]);
  const others = await source.exchangeDenied(deniedHere(processes)).catch(() => null);
  return {
    at: isoTime(now),
    processes: processes.length,
    store: storeState(source.storeKind, processes),
    requests: totalsBy('outcome', families, 'floodgate_requests_total'),
    policies: policyTotalsOf(families),
    newcomers: newcomersOf(families),
    ...mostLimited(processes, others, now),
    paths: mostRequested(processes),
  };
}

export function storeState(kind: StoreState['kind'], processes: readonly ProcessReport[]): StoreState {
  const away = processes.flatMap(({ storeAwaySince }) => storeAwaySince ?? []);
  return {
    kind,
    available: processes.every(({ storeAvailable }) => storeAvailable),
    awaySince: away.length === 0 ? null : isoTime(Math.min(...away)),
    processesWithout: away.length,
    replicas: Math.max(1, ...processes.map(({ replicas }) => replicas)),
  };
}

/** Merges the lists of all processes of this gateway of clients denied most often, in descending order. */
export function deniedHere(processes: readonly ProcessReport[]): Ranked[] {
  return mergeRanked(processes.map(({ limited }) => limited));
}

/** @param others the lists of the other gateways; null if they are unknown */
export function mostLimited(
  processes: readonly ProcessReport[],
  others: readonly (readonly Ranked[])[] | null,
  now: Millis,
): Pick<TopSnapshot, 'isLimitedOfAll' | 'limited' | 'limitedSince'> {
  // A gateway that has ended may have left older denials.
  const merged = mergeRanked([deniedHere(processes), ...(others ?? [])], EXCHANGED_MAX)
    .filter(({ lastAt }) => lastAt >= rankedSince(now))
    .slice(0, LIMITED_MAX);
  return {
    isLimitedOfAll: others !== null,
    limited: merged.map(({ name, count, isExact, other, label, lastAt }) => ({
      identity: name,
      denied: count,
      isExact,
      admitted: other,
      policy: label,
      lastAt: isoTime(lastAt),
    })),
    limitedSince: isoTime(rankedSince(now)),
  };
}

/** Merges the lists of all processes of paths requested most often, in descending order. */
export function mostRequested(processes: readonly ProcessReport[]): RequestedPath[] {
  const merged = mergeRanked(processes.map(({ paths }) => paths)).slice(0, PATHS_MAX);
  return merged.map(({ name, count, isExact, other }) => ({
    path: name,
    requests: count,
    isExact,
    refused: other,
  }));
}
