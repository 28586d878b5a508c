/** One snapshot of what the gateway does: totals since its start, from which whoever asks twice gets rates. */

import type { Family } from '#gateway/observe/metrics/exposition.ts';
import type { LimitedIdentity } from '#gateway/observe/metrics/limited.ts';
import type { ProcessReport } from '#gateway/process/supervisor.ts';
import { isoTime } from '#shared/clock.ts';
import { type PolicyTotals, totalsOf } from './totals.ts';

export interface TopSource {
  readonly kind: 'redis' | 'memory';
  readonly processes: () => Promise<readonly ProcessReport[]>;
  /** Includes processes that ended. */
  readonly families: () => Promise<readonly (readonly Family[])[]>;
}

export interface TopSnapshot {
  readonly at: string;
  /** Processes of this gateway. */
  readonly processes: number;
  readonly store: StoreState;
  readonly requests: Readonly<Record<string, number>>;
  readonly policies: readonly PolicyTotals[];
  /** Denied most since somebody looks, the first one most. */
  readonly limited: readonly LimitedIdentity[];
}

interface StoreState {
  readonly kind: 'redis' | 'memory';
  readonly available: boolean;
  /** Since when the first of the processes decides without it; ISO 8601; null: none does. */
  readonly awaySince: string | null;
  /** Processes of this gateway that decide without it. */
  readonly processesWithout: number;
  /** Processes that share it, on all machines. */
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
    limited: mostLimited(processes),
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

export function mostLimited(processes: readonly ProcessReport[]): LimitedIdentity[] {
  const sums = new Map<string, number>();
  for (const { identity, denied } of processes.flatMap(({ limited }) => limited))
    sums.set(identity, (sums.get(identity) ?? 0) + denied);
  return [...sums]
    .map(([identity, denied]) => ({ identity, denied }))
    .sort((a, b) => b.denied - a.denied)
    .slice(0, LIMITED_MAX);
}
