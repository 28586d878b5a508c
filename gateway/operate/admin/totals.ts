/** Totals of all processes of this gateway since their start, from their metrics. */
import type { Family } from '#gateway/observe/metrics/exposition.ts';

export interface PolicyTotals {
  readonly policy: string;
  readonly allowed: number;
  readonly denied: number;
  readonly shadowDenied: number;
  /** Number of requests decided without the store, whatever the result. */
  readonly degraded: number;
}

export interface Totals {
  readonly requests: Readonly<Record<string, number>>;
  readonly policies: ReadonlyMap<string, PolicyTotals>;
  /** Number of checks that the store did not answer, by kind. */
  readonly storeFailures: Readonly<Record<string, number>>;
  /** Number of requests decided without the store. */
  readonly degraded: number;
  /** Number of requests that the upstream did not answer, by kind. */
  readonly upstreamFailures: Readonly<Record<string, number>>;
  /** Number of refusals without a record. */
  readonly unrecorded: number;
  /** Totals of the protection; null without `protect` in the policy file. */
  readonly protection: ProtectionTotals | null;
}

interface ProtectionTotals {
  readonly mode: string;
  /** Current limit of requests in progress at the application. */
  readonly limit: number;
  readonly waiting: number;
  readonly refused: number;
}

type Mutable<T> = { -readonly [K in keyof T]: T[K] };
type Labels = Readonly<Record<string, string>>;

export function totalsOf(processes: readonly (readonly Family[])[]): Totals {
  const policies = new Map<string, Mutable<PolicyTotals>>();
  const requests: Record<string, number> = {};
  const storeFailures: Record<string, number> = {};
  const upstreamFailures: Record<string, number> = {};
  let degraded = 0;
  let unrecorded = 0;
  const protection = { mode: '', limit: 0, waiting: 0, refused: 0 };
  let last: Mutable<PolicyTotals> | undefined;
  const policyOf = ({ policy = '' }: Labels): Mutable<PolicyTotals> => {
    // The values of one policy are consecutive.
    if (last?.policy === policy) return last;
    last = policies.get(policy);
    if (last !== undefined) return last;
    last = { policy, allowed: 0, denied: 0, shadowDenied: 0, degraded: 0 };
    policies.set(policy, last);
    return last;
  };
  const readers: Readonly<Record<string, (labels: Labels, value: number) => void>> = {
    floodgate_requests_total: ({ outcome = '' }, value) => addTo(requests, outcome, value),
    floodgate_store_failures_total: ({ kind = '' }, value) => addTo(storeFailures, kind, value),
    floodgate_upstream_failures_total: ({ kind = '' }, value) => addTo(upstreamFailures, kind, value),
    floodgate_policy_decisions_total: (labels, value) => {
      const totals = policyOf(labels);
      if (labels.decision === 'allowed') totals.allowed += value;
      else if (labels.decision === 'denied') totals.denied += value;
      else totals.shadowDenied += value;
    },
    floodgate_policy_degraded_total: (labels, value) => {
      policyOf(labels).degraded += value;
    },
    floodgate_store_degraded_total: (_labels, value) => {
      degraded += value;
    },
    floodgate_decisions_unrecorded_total: (_labels, value) => {
      unrecorded += value;
    },
    floodgate_protect_limit: (_labels, value) => {
      protection.limit += value;
    },
    floodgate_protect_waiting: (_labels, value) => {
      protection.waiting += value;
    },
    floodgate_protect_refused_total: ({ mode = '' }, value) => {
      protection.mode = mode;
      protection.refused += value;
    },
  };
  for (const { name, values } of processes.flat()) {
    const read = readers[name];
    if (read !== undefined) for (const { labels, value } of values) read(labels, value);
  }
  return {
    requests,
    policies,
    storeFailures,
    degraded,
    upstreamFailures,
    unrecorded,
    protection: protection.mode === '' ? null : protection,
  };
}

function addTo(record: Record<string, number>, name: string, value: number): void {
  record[name] = (record[name] ?? 0) + value;
}
