/** Totals of all processes of this gateway since their start, from their metrics. */
import type { Family } from '#gateway/observe/metrics/exposition.ts';
import { isoTime } from '#shared/clock.ts';

type Processes = readonly (readonly Family[])[];
type Labels = Readonly<Record<string, string>>;

const NEWCOMER = { client: 'newcomer' };

export interface PolicyTotals {
  readonly policy: string;
  readonly allowed: number;
  readonly denied: number;
  readonly shadowDenied: number;
  /** Number of requests that passed with a mark, because they were over the limit. */
  readonly marked: number;
  /** Number of requests decided without the store, whatever the result. */
  readonly degraded: number;
}

/** Figures of the store, the application and the protection that the page shows. */
interface Totals {
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
  /** null without `newcomers` in the policy file. */
  readonly newcomers: NewcomersTotals | null;
}

interface ProtectionTotals {
  readonly mode: string;
  /** Current limit of requests in progress at the application. */
  readonly limit: number;
  readonly waiting: number;
  readonly refused: number;
}

/** Requests on routes of policies with `newcomers`. */
export interface NewcomersTotals {
  /** Admitted requests of regulars, and of newcomers. */
  readonly regulars: number;
  readonly newcomers: number;
  readonly denied: number;
  /** Number of admitted requests that the limit would have denied. */
  readonly shadowDenied: number;
  /** Requests of newcomers that wait for a place at the application, with `protect`. */
  readonly waiting: number;
  /** Admitted requests of newcomers that were refused to protect the application. */
  readonly overloaded: number;
  /** When the limit begins to act; ISO 8601; null if it acts. */
  readonly actsFrom: string | null;
}

export function totalsOf(processes: Processes): Totals {
  const totalOf = (name: string): number => sumOf(valuesOf(processes, name));
  const [refused] = valuesOf(processes, 'floodgate_protect_refused_total');
  return {
    storeFailures: totalsBy('kind', processes, 'floodgate_store_failures_total'),
    degraded: totalOf('floodgate_store_degraded_total'),
    upstreamFailures: totalsBy('kind', processes, 'floodgate_upstream_failures_total'),
    unrecorded: totalOf('floodgate_decisions_unrecorded_total'),
    protection:
      refused === undefined
        ? null
        : {
            mode: refused.labels.mode ?? '',
            limit: totalOf('floodgate_protect_limit'),
            waiting: totalOf('floodgate_protect_waiting'),
            refused: totalOf('floodgate_protect_refused_total'),
          },
    newcomers: newcomersOf(processes),
  };
}

export function newcomersOf(processes: Processes): NewcomersTotals | null {
  const acting = valuesOf(processes, 'floodgate_newcomers_act_from_timestamp_seconds');
  if (acting.length === 0) return null;
  const names = new Set(acting.map(({ labels }) => labels.policy));
  const actsFrom = Math.max(...acting.map(({ value }) => value));
  const { regular = 0, newcomer = 0 } = totalsBy('client', processes, 'floodgate_visitors_total');
  const decided = (decision: string): number =>
    sumOf(
      valuesOf(processes, 'floodgate_policy_decisions_total', { decision }).filter(({ labels }) =>
        names.has(labels.policy),
      ),
    );
  return {
    regulars: regular,
    newcomers: newcomer,
    denied: decided('denied'),
    shadowDenied: decided('shadow_denied'),
    waiting: sumOf(valuesOf(processes, 'floodgate_protect_waiting', NEWCOMER)),
    overloaded: sumOf(valuesOf(processes, 'floodgate_protect_refused_total', { ...NEWCOMER, mode: 'on' })),
    actsFrom: actsFrom === 0 ? null : isoTime(actsFrom * 1000),
  };
}

/** Returns the totals of each policy, by name. */
export function policyTotalsOf(processes: Processes): PolicyTotals[] {
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
export function totalsBy(label: string, processes: Processes, name: string): Record<string, number> {
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
