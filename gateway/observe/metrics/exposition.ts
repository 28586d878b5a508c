/**
 * Converts samples to Prometheus' text format. Each process gives its metrics in prom-client's JSON form; prom-client
 * sums them over all processes and writes the text.
 */
import type { Sample } from '#gateway/part/sample.ts';

export const CONTENT_TYPE = 'text/plain; version=0.0.4; charset=utf-8';

/**
 * All samples of one name, in the form of prom-client's `getMetricsAsJSON()`. Plain data that can be sent to processes.
 */
export interface Family {
  readonly name: string;
  readonly help: string;
  readonly type: Sample['type'];
  readonly aggregator: 'sum' | 'min';
  readonly values: readonly Value[];
}

interface Value {
  readonly metricName: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

export function families(samples: readonly Sample[]): Family[] {
  const found = new Map<string, { family: Family; values: Value[] }>();
  for (const { name, help, type, labels, value, suffix = '', aggregator = 'sum' } of samples) {
    let known = found.get(name);
    if (known === undefined) {
      const values: Value[] = [];
      known = { family: { name, help, type, aggregator, values }, values };
      found.set(name, known);
    }
    known.values.push({ metricName: `${name}${suffix}`, labels, value });
  }
  return [...found.values()].map(({ family }) => family);
}

/** Sums the values with equal names and labels. */
export async function sum(processes: readonly (readonly Family[])[]): Promise<Family[]> {
  const { AggregatorRegistry } = await promClient();
  return (await AggregatorRegistry.aggregate([...processes]).getMetricsAsJSON()) as unknown as Family[];
}

export async function exposition(processes: readonly (readonly Family[])[]): Promise<string> {
  const { AggregatorRegistry } = await promClient();
  return AggregatorRegistry.aggregate([...processes]).metrics();
}

/** Loads prom-client on the first use, because it takes 3 to 6 MB in each process. */
const promClient = () => import('prom-client');
