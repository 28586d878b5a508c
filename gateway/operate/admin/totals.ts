/** Totals of all processes of this gateway since their start, from their metrics. */
import type { Family } from '#gateway/observe/metrics/exposition.ts';
import { isoTime } from '#shared/clock.ts';

type Processes = readonly (readonly Family[])[];
type Labels = Readonly<Record<string, string>>;

const NEWCOMER = { client: 'newcomer' };

/** Figures of the store, the application and the protection that the page shows. */
export function totalsOf(processes: Processes) {
  const totalOf = (name: string): number => sumOf(valuesOf(processes, name));
  const [refused] = valuesOf(processes, 'floodgate_protect_refused_total');
  return {
    /** Checks that the store did not answer, and requests that it did not decide. */
    storeFailures: totalsBy('kind', processes, 'floodgate_store_failures_total'),
    degraded: totalOf('floodgate_store_degraded_total'),
    /** Requests that the upstream did not answer. */
    upstreamFailures: totalsBy('kind', processes, 'floodgate_upstream_failures_total'),
    /** Refusals without a record. */
    unrecorded: totalOf('floodgate_decisions_unrecorded_total'),
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
    newcomers: newcomersOf(processes),
  };
}

/** Requests on routes of policies with `newcomers`, each counted once; null without any. */
export function newcomersOf(processes: Processes) {
  const acting = valuesOf(processes, 'floodgate_newcomers_act_from_timestamp_seconds');
  if (acting.length === 0) return null;
  const actsFrom = Math.max(...acting.map(({ value }) => value));
  const { regular = 0, newcomer = 0 } = totalsBy('client', processes, 'floodgate_visitors_total');
  const { enforce: denied = 0, shadow: shadowDenied = 0 } = totalsBy(
    'mode',
    processes,
    'floodgate_newcomers_denied_total',
  );
  return {
    /** Admitted requests of regulars, and of newcomers. */
    regulars: regular,
    newcomers: newcomer,
    denied,
    /** Admitted requests that a limit would have denied. */
    shadowDenied,
    /** With `protect`: newcomers that wait for a place, and those that were admitted and then refused. */
    waiting: sumOf(valuesOf(processes, 'floodgate_protect_waiting', NEWCOMER)),
    overloaded: sumOf(valuesOf(processes, 'floodgate_protect_refused_total', { ...NEWCOMER, mode: 'on' })),
    /** Whether the limit denies anybody, unless it is in shadow mode. */
    acts: actsFrom === 0,
    /** When it begins to act; ISO 8601; null if it acts, or if the store was not reached yet. */
    actsFrom: actsFrom > 0 ? isoTime(actsFrom * 1000) : null,
  };
}

export type NewcomersTotals = NonNullable<ReturnType<typeof newcomersOf>>;

/** `marked` are over the limit and passed; `degraded` were decided without the store. */
export function policyTotalsOf(processes: Processes) {
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
