/**
 * The traffic of the last hour in 360 spans of ten seconds. Counters only grow, so a span is what they have grown by
 * between two readings, and the chart and /metrics cannot disagree. A request belongs to the span in which it was
 * decided, and its reply to the one in which it began. A series takes about 60 bytes in each span in which it grows.
 */
import type { Family } from '#gateway/observe/metrics/exposition.ts';
import { GROUPS } from '#gateway/policy/groups.ts';
import { isoTime, type Millis } from '#shared/clock.ts';

export const SPAN_MS: Millis = 10_000;
export const SPANS = 360;
/** Rates are averages over at least this time. */
const RATE_MS: Millis = 5000;
const RATE_MS_MIN: Millis = 1000;

/** Counters without a policy, which also have rates. */
const RATED: ReadonlySet<string> = new Set([
  'floodgate_requests_total',
  'floodgate_replies_total',
  ...GROUPS.flatMap(({ metrics: { visitors, denied } }) => [visitors.name, denied.name]),
  'floodgate_protect_refused_total',
]);
/** All counters that the page draws. */
const DRAWN: ReadonlySet<string> = new Set([
  ...RATED,
  'floodgate_policy_decisions_total',
  'floodgate_policy_degraded_total',
  'floodgate_decision_duration_seconds_bucket',
  'floodgate_store_duration_seconds_bucket',
]);

/** Numbers by series: the name of a metric and the values of its labels, such as `floodgate_requests_total denied`. */
type BySeries = Readonly<Record<string, number>>;

/** How much series have grown since a time. Those that have not are left out. */
interface Growth {
  readonly from: Millis;
  readonly series: BySeries;
}

type Processes = readonly (readonly Family[])[];

export class TrafficHistory {
  readonly since: Millis;
  /** Time of the last reading. */
  readAt: Millis;
  /** The highest value of each series. A process that does not answer at one time is not counted again later. */
  readonly #counted = new Map<string, number>();
  /** Growth by the number of the span. */
  readonly #spans = new Map<number, Map<string, number>>();
  /** The newest growth of RATED counters, oldest first. */
  #newest: readonly Growth[] = [];

  /** @param since start of the gateway, at which all counters are zero */
  constructor(since: Millis) {
    this.since = since;
    this.readAt = since;
  }

  /**
   * Adds a reading of all processes. The growth belongs to the span of the reading before, so the first reading in each
   * span should be as early as possible.
   *
   * @param at when the processes were asked
   * @returns the growth since the last reading, and the start of its span
   */
  add(processes: Processes, at: Millis): { readonly at: string; readonly series: BySeries } {
    const from = this.readAt;
    const series = this.#growthOf(processes);
    this.readAt = Math.max(from, at);
    this.#addTo(Math.floor(from / SPAN_MS), series);
    const rated = Object.entries(series).filter(([name]) => RATED.has(name.split(' ', 1)[0] ?? ''));
    const newest = [...this.#newest, { from, series: Object.fromEntries(rated) }];
    const first = newest.findLastIndex((growth) => growth.from <= this.readAt - RATE_MS);
    this.#newest = newest.slice(Math.max(0, first));
    return { at: isoTime(Math.floor(from / SPAN_MS) * SPAN_MS), series };
  }

  /** Growth per second of the last seconds, by series. null as long as the gateway is too young. */
  rates(): BySeries | null {
    const seconds = (this.readAt - (this.#newest[0]?.from ?? this.readAt)) / 1000;
    if (seconds * 1000 < RATE_MS_MIN) return null;
    const rates: Record<string, number> = {};
    for (const [name, grown] of this.#newest.flatMap(({ series }) => Object.entries(series)))
      rates[name] = (rates[name] ?? 0) + grown / seconds;
    return rates;
  }

  /** The last hour. Each series has a number for each span, oldest first. Times are ISO 8601. */
  traffic() {
    const last = Math.floor(this.readAt / SPAN_MS);
    const series: Record<string, number[]> = {};
    for (const [span, counts] of this.#spans)
      for (const [name, grown] of counts) {
        series[name] ??= new Array<number>(SPANS).fill(0);
        series[name][SPANS - 1 - last + span] = grown;
      }
    return {
      spanSeconds: SPAN_MS / 1000,
      /** Start of the newest span, start of the history, and time of the last reading. */
      lastSpanAt: isoTime(last * SPAN_MS),
      since: isoTime(this.since),
      at: isoTime(this.readAt),
      /** Series that have not grown are left out. */
      series,
    };
  }

  #growthOf(processes: Processes): BySeries {
    const growth: Record<string, number> = {};
    for (const [name, value] of valuesIn(processes)) {
      const grown = value - (this.#counted.get(name) ?? 0);
      if (grown <= 0) continue;
      growth[name] = grown;
      this.#counted.set(name, value);
    }
    return growth;
  }

  /** Also drops spans that are older than an hour. */
  #addTo(span: number, series: BySeries): void {
    const counts = this.#spans.get(span) ?? new Map<string, number>();
    for (const [name, grown] of Object.entries(series)) counts.set(name, (counts.get(name) ?? 0) + grown);
    if (counts.size > 0) this.#spans.set(span, counts);
    const oldest = Math.floor(this.readAt / SPAN_MS) - SPANS + 1;
    for (const known of this.#spans.keys()) if (known < oldest) this.#spans.delete(known);
  }
}

/** Adds up the counters of all processes by series. */
function valuesIn(processes: Processes): Map<string, number> {
  const values = new Map<string, number>();
  for (const { metricName, labels, value } of processes.flat().flatMap((family) => family.values)) {
    if (value === 0 || !DRAWN.has(metricName)) continue;
    const name = [metricName, ...Object.values(labels)].join(' ');
    values.set(name, (values.get(name) ?? 0) + value);
  }
  return values;
}
