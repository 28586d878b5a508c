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
  return [...Map.groupBy(samples, ({ name }) => name).values()].flatMap((same) => {
    const [first] = same;
    if (first === undefined) return [];
    const { name, help, type, aggregator = 'sum' } = first;
    const values = same.map(({ labels, value, suffix = '' }) => {
      return { metricName: `${name}${suffix}`, labels, value };
    });
    return { name, help, type, aggregator, values };
  });
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
