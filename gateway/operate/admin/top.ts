/** One snapshot of the gateway's activity: totals since its start. Two snapshots give rates. */

import type { Family } from '#gateway/observe/metrics/exposition.ts';
import { type LimitedIdentity, limitedSince, mergeLimited } from '#gateway/observe/metrics/limited.ts';
import type { ProcessReport } from '#gateway/process/supervisor.ts';
import { isoTime, type Millis } from '#shared/clock.ts';
import { type PolicyTotals, totalsOf } from './totals.ts';

export interface TopSource {
  readonly kind: 'redis' | 'memory';
  readonly processes: () => Promise<readonly ProcessReport[]>;
  /** Totals since the start, including those of processes that have ended. */
  readonly families: () => Promise<readonly (readonly Family[])[]>;
}

export interface TopSnapshot {
  readonly at: string;
  /** Number of processes of this gateway. */
  readonly processes: number;
  readonly store: StoreState;
  readonly requests: Readonly<Record<string, number>>;
  readonly policies: readonly PolicyTotals[];
  readonly limited: readonly LimitedClient[];
  /** Start of the time that `limited` covers; ISO 8601. */
  readonly limitedSince: string;
}

/** One of the clients denied most often, with the policy that denied it last. */
interface LimitedClient extends Omit<LimitedIdentity, 'lastAt'> {
  /** ISO 8601. */
  readonly lastAt: string;
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

export async function topSnapshot(source: TopSource, now: number): Promise<TopSnapshot> {
  const [processes, families] = await Promise.all([source.processes(), source.families()]);
  const { requests, policies } = totalsOf(families);
  return {
    at: isoTime(now),
    processes: processes.length,
    store: storeState(source.kind, processes),
    requests,
    policies: [...policies.values()].sort((a, b) => a.policy.localeCompare(b.policy)),
    ...mostLimited(processes, now),
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

/** Merges the lists of all processes of clients denied most often, in descending order. */
export function mostLimited(
  processes: readonly ProcessReport[],
  now: Millis,
): Pick<TopSnapshot, 'limited' | 'limitedSince'> {
  const merged = mergeLimited(processes.map(({ limited }) => limited)).slice(0, LIMITED_MAX);
  return {
    limited: merged.map((one) => ({ ...one, lastAt: isoTime(one.lastAt) })),
    limitedSince: isoTime(limitedSince(now)),
  };
}
