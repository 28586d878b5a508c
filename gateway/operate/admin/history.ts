/**
 * The traffic of the last hour in 360 spans of ten seconds. A policy takes about 100 bytes in each span in which it has
 * requests. Each request is in the span in which it arrived. The processes count it by the second, and the admin
 * process takes these counts every 15 seconds, and every second while a page is open.
 */
import { DURATION_BOUNDS_SECONDS } from '#gateway/observe/metrics/histogram.ts';
import {
  POLICY_COUNTS,
  type PolicyCount,
  type Second,
  TIME_BUCKETS,
} from '#gateway/observe/metrics/seconds.ts';
import { type Clock, isoTime, type Millis } from '#shared/clock.ts';

export const SPAN_MS: Millis = 10_000;
export const SPANS = 360;
/** Rates are averages over this many seconds. */
const RATE_SECONDS = 5;

/** Numbers of each count, oldest span first. A count that is 0 for the whole hour is left out. */
type Series = { readonly [K in PolicyCount]?: readonly number[] };
type SeriesByName = Readonly<Record<string, readonly number[]>>;

/** Numbers of requests. */
interface Counts {
  readonly requests: Readonly<Record<string, number>>;
  readonly statuses: Readonly<Record<string, number>>;
  /** By policy, in the order of POLICY_COUNTS. */
  readonly policies: Readonly<Record<string, readonly number[]>>;
  readonly decisionTime: readonly number[];
  readonly storeTime: readonly number[];
}

/** Requests that were added to a span. */
interface Growth extends Counts {
  /** Start of the span; ISO 8601. */
  readonly at: string;
}

const NO_TIMES: readonly number[] = Array.from({ length: TIME_BUCKETS }, () => 0);
const NO_COUNTS: Counts = {
  requests: {},
  statuses: {},
  policies: {},
  decisionTime: NO_TIMES,
  storeTime: NO_TIMES,
};

export class TrafficHistory {
  readonly #clock: Clock;
  readonly #since: Millis;
  /** Counts of the spans with requests, by the number of the span. */
  readonly #spans = new Map<number, Counts>();
  /** Seconds that were not over when the processes were asked. */
  #early: readonly Second[] = [];
  /** The newest seconds, for rates. */
  #newest: readonly Second[] = [];
  #until: Millis;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#since = clock();
    this.#until = this.#since;
  }

  /** All requests that arrived before this time, and were decided, are counted. */
  get until(): Millis {
    return this.#until;
  }

  /**
   * Adds the counts of all processes.
   *
   * @param askedAt time at which the processes were asked. Their counts of all earlier seconds are complete
   * @returns the increase of each span, oldest first
   */
  add(seconds: readonly Second[], askedAt: Millis): Growth[] {
    this.#until = Math.max(this.#until, Math.floor(askedAt / 1000) * 1000);
    const all = [...this.#early, ...seconds];
    this.#early = all.filter(({ at }) => at * 1000 >= this.#until);
    const due = all.filter(({ at }) => at * 1000 < this.#until && at * 1000 >= this.#until - SPANS * SPAN_MS);
    this.#newest = [...this.#newest, ...due].filter(({ at }) => at >= this.#until / 1000 - RATE_SECONDS);
    const growth = Map.groupBy(due, ({ at }) => Math.floor((at * 1000) / SPAN_MS));
    return [...growth].sort(([a], [b]) => a - b).map(([span, added]) => this.#addTo(span, added));
  }

  /** Requests per second by outcome, of the last seconds. null as long as no second is known. */
  rates(): Readonly<Record<string, number>> | null {
    const seconds = Math.min(RATE_SECONDS, Math.ceil((this.#until - this.#since) / 1000));
    if (seconds < 1) return null;
    const counts = countsOf(this.#newest.map(({ requests }) => requests));
    return Object.fromEntries(Object.entries(counts).map(([outcome, count]) => [outcome, count / seconds]));
  }

  /** Series have a number for each span, oldest first. Times are ISO 8601. */
  traffic() {
    const at = this.#span;
    this.#forget();
    const spans = Array.from({ length: SPANS }, (_, i) => this.#spans.get(at - SPANS + 1 + i) ?? NO_COUNTS);
    const policies = namesIn(spans.map((span) => span.policies));
    return {
      spanSeconds: SPAN_MS / 1000,
      /** Start of the current span, and of the history. */
      lastSpanAt: new Date(at * SPAN_MS).toISOString(),
      since: isoTime(this.#since),
      /** All requests that arrived before this time, and were decided, are counted. */
      until: isoTime(this.#until),
      /** Counts that are 0 for the whole hour are left out. */
      policies: policies.map((policy) => ({ policy, ...seriesOf(policy, spans) })),
      /** By outcome, as in the metrics, including those without a policy; replies by the class of their status. */
      requests: seriesByName(spans.map(({ requests }) => requests)),
      statuses: seriesByName(spans.map(({ statuses }) => statuses)),
      /** `decisionTime` has for each span one number for each bound, and one for longer times. */
      boundsSeconds: DURATION_BOUNDS_SECONDS,
      decisionTime: spans.map(({ decisionTime }) => decisionTime),
      storeTime: spans.map(({ storeTime }) => storeTime),
    };
  }

  get #span(): number {
    return Math.floor(this.#clock() / SPAN_MS);
  }

  #addTo(span: number, seconds: readonly Second[]): Growth {
    this.#forget();
    const growth = sumOf(
      seconds.map(({ policies, ...counts }) => ({ ...counts, policies: Object.fromEntries(policies) })),
    );
    this.#spans.set(span, sumOf([this.#spans.get(span) ?? NO_COUNTS, growth]));
    return { at: isoTime(span * SPAN_MS), ...growth };
  }

  /** Drops spans that are older than an hour. */
  #forget(): void {
    for (const span of this.#spans.keys()) if (span <= this.#span - SPANS) this.#spans.delete(span);
  }
}

/** Leaves out counts that are 0 in all spans. */
function seriesOf(policy: string, spans: readonly Counts[]): Series {
  const found = POLICY_COUNTS.map((count, i) => {
    const series = spans.map(({ policies }) => policies[policy]?.[i] ?? 0);
    return [count, series] as const;
  });
  return Object.fromEntries(found.filter(([, series]) => series.some((value) => value > 0)));
}

function seriesByName(spans: readonly Readonly<Record<string, number>>[]): SeriesByName {
  return Object.fromEntries(namesIn(spans).map((name) => [name, spans.map((span) => span[name] ?? 0)]));
}

function namesIn(records: readonly object[]): string[] {
  return [...new Set(records.flatMap(Object.keys))].sort();
}

function sumOf(all: readonly Counts[]): Counts {
  return {
    requests: countsOf(all.map(({ requests }) => requests)),
    statuses: countsOf(all.map(({ statuses }) => statuses)),
    policies: policiesOf(all),
    decisionTime: rowOf(all.map(({ decisionTime }) => decisionTime)),
    storeTime: rowOf(all.map(({ storeTime }) => storeTime)),
  };
}

function policiesOf(all: readonly Counts[]): Record<string, readonly number[]> {
  const sums: Record<string, readonly number[]> = {};
  for (const [policy, counts] of all.flatMap(({ policies }) => Object.entries(policies))) {
    const known = sums[policy];
    sums[policy] = known === undefined ? counts : rowOf([known, counts]);
  }
  return sums;
}

function countsOf(records: readonly Readonly<Record<string, number>>[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const [name, count] of records.flatMap(Object.entries<number>))
    counts[name] = (counts[name] ?? 0) + count;
  return counts;
}

function rowOf(rows: readonly (readonly number[])[]): readonly number[] {
  return rows.reduce((all, row) => all.map((value, i) => value + (row[i] ?? 0)));
}
