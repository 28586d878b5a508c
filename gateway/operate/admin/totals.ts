/** Totals of all processes of this gateway since their start, from their metrics. */
import type { Family } from '#gateway/observe/metrics/exposition.ts';

export type Processes = readonly (readonly Family[])[];
type Labels = Readonly<Record<string, string>>;

/** Figures of the store, the application and the protection that the page shows. */
export function totalsOf(processes: Processes) {
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

export function valuesOf(processes: Processes, name: string, labels: Labels = {}): Family['values'] {
  const wanted = Object.entries(labels);
  return processes
    .flat()
    .flatMap((family) => (family.name === name ? family.values : []))
    .filter((one) => wanted.every(([label, value]) => one.labels[label] === value));
}

export function sumOf(values: Family['values']): number {
  return values.reduce((sum, { value }) => sum + value, 0);
}

function addTo(record: Record<string, number>, name = '', value: number): void {
  record[name] = (record[name] ?? 0) + value;
}
