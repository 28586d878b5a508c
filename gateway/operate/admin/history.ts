/**
 * The traffic of the last hour, in rings of a fixed size: 360 spans of ten seconds, 6 KB for each policy with traffic.
 * Each request is in the span in which it arrived. The processes count it by the second, and the admin process takes
 * these counts every 15 seconds, and every second while a page is open.
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
/** Maximum number of policies with a ring. Other policies count only in the total. */
export const RINGS_MAX = 1000;
/** Rates are averages over this many seconds. */
const RATE_SECONDS = 5;

/** Numbers of each count, oldest span first. A count that is 0 for the whole hour is left out. */
type Series = { readonly [K in PolicyCount]?: readonly number[] };
type SeriesByName = Readonly<Record<string, readonly number[]>>;

interface Traffic {
  readonly spanSeconds: number;
  /** Start of the current span; ISO 8601. */
  readonly lastSpanAt: string;
  /** Start of the history; ISO 8601. */
  readonly since: string;
  readonly policies: readonly ({ readonly policy: string } & Series)[];
  /** Requests by outcome, as in the metrics, including those without a policy. */
  readonly requests: SeriesByName;
  /** Replies of the application by the class of their status. */
  readonly statuses: SeriesByName;
  /** Bounds of the histogram. `decisionTime` has for each span one number for each bound, and one for longer times. */
  readonly boundsSeconds: readonly number[];
  readonly decisionTime: readonly (readonly number[])[];
  readonly storeTime: readonly (readonly number[])[];
}

/** Requests that were added to a span. */
interface Growth {
  /** Start of the span; ISO 8601. */
  readonly at: string;
  readonly requests: Record<string, number>;
  readonly statuses: Record<string, number>;
  /** By policy, in the order of POLICY_COUNTS. */
  readonly policies: Record<string, readonly number[]>;
  readonly decisionTime: readonly number[];
  readonly storeTime: readonly number[];
}

class Ring {
  readonly width: number;
  readonly #cells: Uint32Array;
  /** Number of the newest span of the history. */
  #last: number;
  /** Number of the newest span with a value. */
  usedAt: number;

  constructor(width: number, at: number) {
    this.width = width;
    this.#cells = new Uint32Array(width * SPANS);
    this.#last = at;
    this.usedAt = at;
  }

  add(at: number, values: readonly number[]): void {
    this.#forgetUntil(at);
    this.usedAt = Math.max(this.usedAt, at);
    const from = (at % SPANS) * this.width;
    for (let i = 0; i < this.width; i++)
      this.#cells[from + i] = (this.#cells[from + i] ?? 0) + (values[i] ?? 0);
  }

  /** One number for each span, oldest first; undefined if all are 0. */
  series(at: number, i = 0): readonly number[] | undefined {
    const values = this.#spans(at).map((from) => this.#cells[from + i] ?? 0);
    return values.some((value) => value > 0) ? values : undefined;
  }

  rows(at: number): number[][] {
    return this.#spans(at).map((from) => [...this.#cells.subarray(from, from + this.width)]);
  }

  #spans(at: number): number[] {
    this.#forgetUntil(at);
    return Array.from({ length: SPANS }, (_, i) => ((at + 1 + i) % SPANS) * this.width);
  }

  /** Clears spans that are older than an hour. */
  #forgetUntil(at: number): void {
    for (let span = Math.max(this.#last, at - SPANS) + 1; span <= at; span++)
      this.#cells.fill(0, (span % SPANS) * this.width, (span % SPANS) * this.width + this.width);
    this.#last = Math.max(this.#last, at);
  }
}

export class TrafficHistory {
  readonly #clock: Clock;
  readonly #since: Millis;
  readonly #policies = new Map<string, Ring>();
  readonly #requests = new Map<string, Ring>();
  readonly #statuses = new Map<string, Ring>();
  readonly #decisionTime: Ring;
  readonly #storeTime: Ring;
  /** Seconds that were not over when the processes were asked. */
  #early: readonly Second[] = [];
  /** The newest seconds, for rates. */
  #newest: readonly Second[] = [];
  #until: Millis;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#since = clock();
    this.#until = this.#since;
    this.#decisionTime = new Ring(TIME_BUCKETS, this.#span);
    this.#storeTime = new Ring(TIME_BUCKETS, this.#span);
  }

  get policyRings(): number {
    return this.#policies.size;
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

  traffic(): Traffic {
    const at = this.#span;
    const byName = (rings: ReadonlyMap<string, Ring>): SeriesByName =>
      Object.fromEntries([...rings].map(([name, ring]) => [name, ring.series(at) ?? []]));
    return {
      spanSeconds: SPAN_MS / 1000,
      lastSpanAt: new Date(at * SPAN_MS).toISOString(),
      since: isoTime(this.#since),
      policies: [...this.#policies]
        .map(([policy, ring]) => ({ policy, ...seriesOf(ring, at) }))
        .filter((one) => Object.keys(one).length > 1)
        .sort((a, b) => a.policy.localeCompare(b.policy)),
      requests: byName(this.#requests),
      statuses: byName(this.#statuses),
      boundsSeconds: DURATION_BOUNDS_SECONDS,
      decisionTime: this.#decisionTime.rows(at),
      storeTime: this.#storeTime.rows(at),
    };
  }

  get #span(): number {
    return Math.floor(this.#clock() / SPAN_MS);
  }

  #addTo(span: number, seconds: readonly Second[]): Growth {
    const growth = {
      at: isoTime(span * SPAN_MS),
      requests: countsOf(seconds.map(({ requests }) => requests)),
      statuses: countsOf(seconds.map(({ statuses }) => statuses)),
      policies: policiesOf(seconds),
      decisionTime: sumOf(seconds.map(({ decisionTime }) => decisionTime)),
      storeTime: sumOf(seconds.map(({ storeTime }) => storeTime)),
    };
    for (const [policy, counts] of Object.entries(growth.policies))
      this.#ringOf(policy, span)?.add(span, counts);
    for (const kind of ['requests', 'statuses'] as const) {
      const rings = kind === 'requests' ? this.#requests : this.#statuses;
      for (const [name, count] of Object.entries(growth[kind])) {
        const ring = rings.get(name) ?? new Ring(1, span);
        rings.set(name, ring);
        ring.add(span, [count]);
      }
    }
    this.#decisionTime.add(span, growth.decisionTime);
    this.#storeTime.add(span, growth.storeTime);
    return growth;
  }

  #ringOf(policy: string, at: number): Ring | null {
    const known = this.#policies.get(policy);
    if (known !== undefined) return known;
    // These names belong to policies of files that are no longer in use.
    if (this.#policies.size >= RINGS_MAX)
      for (const [name, ring] of this.#policies) if (ring.usedAt <= at - SPANS) this.#policies.delete(name);
    if (this.#policies.size >= RINGS_MAX) return null;
    const ring = new Ring(POLICY_COUNTS.length, at);
    this.#policies.set(policy, ring);
    return ring;
  }
}

function seriesOf(ring: Ring, at: number): Series {
  const found = POLICY_COUNTS.map((name, i) => [name, ring.series(at, i)] as const);
  return Object.fromEntries(found.filter(([, series]) => series !== undefined));
}

function policiesOf(seconds: readonly Second[]): Record<string, readonly number[]> {
  const counts = Map.groupBy(
    seconds.flatMap(({ policies }) => policies),
    ([policy]) => policy,
  );
  return Object.fromEntries([...counts].map(([policy, each]) => [policy, sumOf(each.map(([, one]) => one))]));
}

function countsOf(records: readonly Readonly<Record<string, number>>[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const [name, count] of records.flatMap(Object.entries<number>))
    counts[name] = (counts[name] ?? 0) + count;
  return counts;
}

function sumOf(rows: readonly (readonly number[])[]): readonly number[] {
  return rows.reduce((all, row) => all.map((value, i) => value + (row[i] ?? 0)));
}
