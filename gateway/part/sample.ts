/** One value for Prometheus. */
export interface Sample {
  readonly name: string;
  readonly help: string;
  readonly type: 'counter' | 'gauge' | 'histogram';
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
  readonly suffix?: '_bucket' | '_sum' | '_count';
  /** How values of several processes are combined; unset: they are summed. */
  readonly aggregator?: 'min';
}

/** A sample that counts up. */
export interface Counter extends Sample {
  value: number;
}

export function counter(
  name: string,
  help: string,
  value: number,
  labels: Record<string, string> = {},
): Counter {
  return { name, help, type: 'counter', labels, value };
}

export function gauge(
  name: string,
  help: string,
  value: number,
  labels: Record<string, string> = {},
): Sample {
  return { name, help, type: 'gauge', labels, value };
}
