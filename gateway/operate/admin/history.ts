/**
 * The traffic of the last hour by policy, in rings of a fixed size: 120 spans of half a minute, 2 KB for each policy
 * with traffic. Requests update nothing here. Every half minute, and every second while a page is open, the increase of
 * the metrics is added to the current span.
 */
import { DURATION_BOUNDS_SECONDS } from '#gateway/observe/metrics/histogram.ts';
import { type Clock, isoTime, type Millis } from '#shared/clock.ts';
import { type PolicyTotals, TIME_BUCKETS, type Totals } from './totals.ts';

export const SPAN_MS: Millis = 30_000;
export const SPANS = 120;
/** Maximum number of policies with a ring. Other policies count only in the total. */
export const RINGS_MAX = 1000;

/** Fields of each span of a policy's ring, in this order. */
const COUNTS = ['allowed', 'denied', 'shadowDenied', 'degraded'] as const;
type Counts = readonly [allowed: number, denied: number, shadowDenied: number, degraded: number];

/** Numbers of each count, oldest span first. A count that is 0 for the whole hour is left out. */
type Series = { readonly [K in (typeof COUNTS)[number]]?: readonly number[] };

interface Traffic {
  readonly spanSeconds: number;
  /** Start of the current span; ISO 8601. */
  readonly lastSpanAt: string;
  /** Start of the history; ISO 8601. */
  readonly since: string;
  readonly policies: readonly ({ readonly policy: string } & Series)[];
  /** Requests by outcome, as in the metrics, including those without a policy. */
  readonly requests: Readonly<Record<string, readonly number[]>>;
  /** Bounds of the histogram. `decisionTime` has for each span one number for each bound, and one for longer times. */
  readonly boundsSeconds: readonly number[];
  readonly decisionTime: readonly (readonly number[])[];
  readonly storeTime: readonly (readonly number[])[];
}

/** Increase of the metrics since the last call. */
export interface Growth {
  readonly policies: ReadonlyMap<string, Counts>;
  readonly requests: Readonly<Record<string, number>>;
  readonly decisionTime: readonly number[];
  readonly storeTime: readonly number[];
}

class Ring {
  readonly width: number;
  readonly #cells: Uint32Array;
  /** Number of the newest span of the history. */
  #last: number;
  /** Number of the span to which the last increase was added. */
  usedAt: number;

  constructor(width: number, at: number) {
    this.width = width;
    this.#cells = new Uint32Array(width * SPANS);
    this.#last = at;
    this.usedAt = at;
  }

  add(at: number, values: readonly number[]): void {
    this.#forgetUntil(at);
    this.usedAt = at;
    const from = (at % SPANS) * this.width;
    for (let i = 0; i < this.width; i++)
      this.#cells[from + i] = (this.#cells[from + i] ?? 0) + (values[i] ?? 0);
  }

  /** One number for each span, oldest first; undefined if all are 0. */
  series(at: number, i: number): readonly number[] | undefined {
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
  readonly #decisionTime: Ring;
  readonly #storeTime: Ring;
  #before: Totals | null = null;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#since = clock();
    this.#decisionTime = new Ring(TIME_BUCKETS, this.#span);
    this.#storeTime = new Ring(TIME_BUCKETS, this.#span);
  }

  get policyRings(): number {
    return this.#policies.size;
  }

  /** @returns the increase since the last call */
  add(totals: Totals): Growth {
    const growth = grownBy(totals, this.#before);
    this.#before = totals;
    const at = this.#span;
    for (const [policy, counts] of growth.policies) this.#ringOf(policy, at)?.add(at, counts);
    for (const [outcome, count] of Object.entries(growth.requests)) {
      const ring = this.#requests.get(outcome) ?? new Ring(1, at);
      this.#requests.set(outcome, ring);
      ring.add(at, [count]);
    }
    this.#decisionTime.add(at, growth.decisionTime);
    this.#storeTime.add(at, growth.storeTime);
    return growth;
  }

  traffic(): Traffic {
    const at = this.#span;
    const requests: Record<string, readonly number[]> = {};
    for (const [outcome, ring] of this.#requests) requests[outcome] = ring.series(at, 0) ?? [];
    return {
      spanSeconds: SPAN_MS / 1000,
      lastSpanAt: new Date(at * SPAN_MS).toISOString(),
      since: isoTime(this.#since),
      policies: [...this.#policies]
        .map(([policy, ring]) => ({ policy, ...seriesOf(ring, at) }))
        .filter((one) => Object.keys(one).length > 1)
        .sort((a, b) => a.policy.localeCompare(b.policy)),
      requests,
      boundsSeconds: DURATION_BOUNDS_SECONDS,
      decisionTime: this.#decisionTime.rows(at),
      storeTime: this.#storeTime.rows(at),
    };
  }

  get #span(): number {
    return Math.floor(this.#clock() / SPAN_MS);
  }

  #ringOf(policy: string, at: number): Ring | null {
    const known = this.#policies.get(policy);
    if (known !== undefined) return known;
    // These names belong to policies of files that are no longer in use.
    if (this.#policies.size >= RINGS_MAX)
      for (const [name, ring] of this.#policies) if (ring.usedAt <= at - SPANS) this.#policies.delete(name);
    if (this.#policies.size >= RINGS_MAX) return null;
    const ring = new Ring(COUNTS.length, at);
    this.#policies.set(policy, ring);
    return ring;
  }
}

function seriesOf(ring: Ring, at: number): Series {
  const found = COUNTS.map((name, i) => [name, ring.series(at, i)] as const);
  return Object.fromEntries(found.filter(([, series]) => series !== undefined));
}

/**
 * Returns the increase of totals. A process that was replaced may have lost its last second, so a negative increase
 * counts as 0.
 */
function grownBy(now: Totals, before: Totals | null): Growth {
  const policies = new Map<string, Counts>();
  for (const [name, totals] of now.policies) {
    const earlier = before?.policies.get(name);
    if (earlier !== undefined && COUNTS.every((key) => totals[key] === earlier[key])) continue;
    const counts = COUNTS.map((key: keyof PolicyTotals & (typeof COUNTS)[number]) =>
      Math.max(0, totals[key] - (earlier?.[key] ?? 0)),
    ) as [number, number, number, number];
    if (counts.some((count) => count > 0)) policies.set(name, counts);
  }
  const requests: Record<string, number> = {};
  for (const [outcome, count] of Object.entries(now.requests)) {
    const grown = count - (before?.requests[outcome] ?? 0);
    if (grown > 0) requests[outcome] = grown;
  }
  return {
    policies,
    requests,
    decisionTime: now.decisionTime.map((count, i) => Math.max(0, count - (before?.decisionTime[i] ?? 0))),
    storeTime: now.storeTime.map((count, i) => Math.max(0, count - (before?.storeTime[i] ?? 0))),
  };
}
