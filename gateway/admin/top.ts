/** One snapshot of what the gateway does: totals since its start, from which whoever asks twice gets rates. */
import type { LimitedIdentity } from '#gateway/control/limited.ts';
import type { Family } from '#gateway/exposition.ts';

export interface TopSource {
  readonly kind: 'redis' | 'memory';
  /** Of each process that answers. */
  readonly processes: () => Promise<readonly ProcessReport[]>;
  /** Of each process, also of those that ended. */
  readonly families: () => Promise<readonly (readonly Family[])[]>;
}

export interface ProcessReport {
  readonly storeAvailable: boolean;
  readonly replicas: number;
  readonly limited: readonly LimitedIdentity[];
}

export interface TopSnapshot {
  /** ISO 8601, UTC. */
  readonly at: string;
  /** Processes of this gateway. */
  readonly processes: number;
  readonly store: {
    readonly kind: 'redis' | 'memory';
    readonly available: boolean;
    /** Processes that share it, on all machines. */
    readonly replicas: number;
  };
  /** By outcome. */
  readonly requests: Readonly<Record<string, number>>;
  readonly policies: readonly PolicyTotals[];
  /** Denied most since somebody looks, the first one most. */
  readonly limited: readonly LimitedIdentity[];
}

export interface PolicyTotals {
  readonly policy: string;
  readonly allowed: number;
  readonly denied: number;
  readonly shadowDenied: number;
}

const LIMITED_MAX = 20;

export async function topSnapshot(source: TopSource, now: number): Promise<TopSnapshot> {
  const [processes, families] = await Promise.all([source.processes(), source.families()]);
  const requests: Record<string, number> = {};
  const policies = new Map<
    string,
    { policy: string; allowed: number; denied: number; shadowDenied: number }
  >();
  for (const { name, values } of families.flat()) {
    for (const { labels, value } of values) {
      if (name === 'floodgate_requests_total') {
        const { outcome = '' } = labels;
        requests[outcome] = (requests[outcome] ?? 0) + value;
      } else if (name === 'floodgate_policy_decisions_total') {
        const { policy = '', decision } = labels;
        const totals = policies.get(policy) ?? { policy, allowed: 0, denied: 0, shadowDenied: 0 };
        policies.set(policy, totals);
        if (decision === 'allowed') totals.allowed += value;
        else if (decision === 'denied') totals.denied += value;
        else totals.shadowDenied += value;
      }
    }
  }
  return {
    at: new Date(Math.round(now)).toISOString(),
    processes: processes.length,
    store: {
      kind: source.kind,
      available: processes.every(({ storeAvailable }) => storeAvailable),
      replicas: Math.max(1, ...processes.map(({ replicas }) => replicas)),
    },
    requests,
    policies: [...policies.values()].sort((a, b) => a.policy.localeCompare(b.policy)),
    limited: mostLimited(processes.flatMap(({ limited }) => limited)),
  };
}

function mostLimited(all: readonly LimitedIdentity[]): LimitedIdentity[] {
  const sums = new Map<string, number>();
  for (const { identity, denied } of all) sums.set(identity, (sums.get(identity) ?? 0) + denied);
  return [...sums]
    .map(([identity, denied]) => ({ identity, denied }))
    .sort((a, b) => b.denied - a.denied)
    .slice(0, LIMITED_MAX);
}
