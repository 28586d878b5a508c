/**
 * From plain numbers to Prometheus' text format. Each process gives its families as prom-client's own JSON; prom-client
 * adds up the processes and writes the text.
 */
import type { Sample } from './metrics.ts';

/** Of the text format 0.0.4. */
export const CONTENT_TYPE = 'text/plain; version=0.0.4; charset=utf-8';

/** All samples of one name, in the form of prom-client's `getMetricsAsJSON()`: plain data that travels between processes. */
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

/** Values of the same name and labels become their sum. */
export async function sum(processes: readonly (readonly Family[])[]): Promise<Family[]> {
  const { AggregatorRegistry } = await promClient();
  return (await AggregatorRegistry.aggregate([...processes]).getMetricsAsJSON()) as unknown as Family[];
}

/** @returns Prometheus' text format 0.0.4 */
export async function exposition(processes: readonly (readonly Family[])[]): Promise<string> {
  const { AggregatorRegistry } = await promClient();
  return AggregatorRegistry.aggregate([...processes]).metrics();
}

/** 3 to 6 MB in each process, so nobody has it who never asks for metrics. */
const promClient = () => import('prom-client');
