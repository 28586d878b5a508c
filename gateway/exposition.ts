/**
 * From plain numbers to Prometheus' text format 0.0.4: grouped by name, added up over all processes, written out. A client
 * library would do it too, for 3 to 6 MB in each process.
 * https://prometheus.io/docs/instrumenting/exposition_formats/#text-based-format
 */
import type { Sample } from './metrics.ts';

export const CONTENT_TYPE = 'text/plain; version=0.0.4; charset=utf-8';

/** All samples of one name: plain data that travels between processes. */
export interface Family {
  readonly name: string;
  readonly help: string;
  readonly type: Sample['type'];
  readonly aggregator: keyof typeof AGGREGATORS;
  readonly values: readonly Value[];
}

interface Value {
  readonly metricName: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

/** What becomes of the values of two processes. */
const AGGREGATORS = {
  sum: (one: number, other: number): number => one + other,
  min: Math.min,
} as const;

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

/** Values of the same name and labels become one: their sum, or what else the family's aggregator makes of them. */
export function sum(processes: readonly (readonly Family[])[]): Family[] {
  const found = new Map<string, { family: Family; values: Map<string, Value> }>();
  for (const family of processes.flat()) {
    const { values } = found.get(family.name) ?? { values: new Map<string, Value>() };
    found.set(family.name, { family, values });
    for (const value of family.values) {
      const series = seriesOf(value);
      const other = values.get(series);
      const both =
        other === undefined ? value.value : AGGREGATORS[family.aggregator](other.value, value.value);
      values.set(series, { ...value, value: both });
    }
  }
  return [...found.values()].map(({ family, values }) => ({ ...family, values: [...values.values()] }));
}

/** @returns Prometheus' text format, of type CONTENT_TYPE */
export function exposition(processes: readonly (readonly Family[])[]): string {
  const lines = sum(processes).flatMap(({ name, help, type, values }) => [
    `# HELP ${name} ${escaped(help)}`,
    `# TYPE ${name} ${type}`,
    ...values.map((value) => `${seriesOf(value)} ${numberText(value.value)}`),
  ]);
  return lines.map((line) => `${line}\n`).join('');
}

/** As the format names it: `name{label="value"}`. */
function seriesOf({ metricName, labels }: Value): string {
  const pairs = Object.entries(labels).map(
    ([name, value]) => `${name}="${escaped(value).replaceAll('"', '\\"')}"`,
  );
  return pairs.length === 0 ? metricName : `${metricName}{${pairs.join(',')}}`;
}

function escaped(text: string): string {
  return text.replaceAll('\\', '\\\\').replaceAll('\n', '\\n');
}

function numberText(value: number): string {
  return String(value).replace('Infinity', 'Inf');
}
