/** The traffic of the last hour: the history that the gateway sends first, and the increase of each second after that. */

export const COUNTS = ['allowed', 'denied', 'shadowDenied', 'degraded'];
const PASSED = ['allowed', 'uncovered'];
const SPANS = 120;
/** Rates are averages over this many seconds. */
const RECENT = 5;
/** While the page is open it has steps of this length for the newest minutes. Earlier ones have the gateway's length. */
const FINE_MS = 5000;
const FINE_RANGE_MS = 300_000;

/** @typedef {{ sums: number[], series: number[][] }} PolicyTraffic in the order of COUNTS */
/** @typedef {{ from: number, to: number, passed: number, refused: number, times: number[] }} Step of the chart */

export class Traffic {
  constructor() {
    /** @type {Map<string, PolicyTraffic>} */
    this.policies = new Map();
    /** @type {Map<string, number[]>} by outcome */
    this.requests = new Map();
    /** @type {number[][]} by span, requests by their duration */
    this.decisionTime = [];
    /** @type {number[][]} */
    this.storeTime = [];
    /** @type {number[]} */
    this.boundsSeconds = [];
    /** @type {{ at: string, kind: string, text: string }[]} */
    this.marks = [];
    this.spanMs = 30_000;
    this.lastSpan = 0;
    /** Start of the history, and the gateway's time. */
    this.since = 0;
    this.now = 0;
    /** @type {{ at: number, requests: Record<string, number>, failures: number }[]} */
    this.recent = [];
    /** @type {Step[]} */
    this.fine = [];
  }

  /** Replaces everything. */
  take(whole) {
    this.spanMs = whole.spanSeconds * 1000;
    this.lastSpan = Math.round(Date.parse(whole.lastSpanAt) / this.spanMs);
    this.since = Date.parse(whole.since);
    this.now = Math.max(this.now, this.lastSpan * this.spanMs + 1);
    this.policies = new Map(
      whole.policies.map((one) => {
        const series = COUNTS.map((name) => one[name] ?? zeroes());
        return [one.policy, { series, sums: series.map(sum) }];
      }),
    );
    this.requests = new Map(Object.entries(whole.requests));
    this.decisionTime = whole.decisionTime;
    this.storeTime = whole.storeTime;
    this.boundsSeconds = whole.boundsSeconds;
    this.marks = whole.marks;
    this.recent = [];
    this.fine = [];
  }

  /** @returns {Set<string>} the policies whose numbers changed */
  add(second) {
    this.now = Date.parse(second.at);
    this.marks = second.marks ?? this.marks;
    const span = Math.floor(this.now / this.spanMs);
    const changed = span > this.lastSpan ? this.#move(span - this.lastSpan) : new Set();
    this.lastSpan = Math.max(span, this.lastSpan);
    for (const [policy, counts] of Object.entries(second.policies)) {
      changed.add(policy);
      const traffic = this.of(policy);
      counts.forEach((grown, i) => {
        traffic.sums[i] += grown;
        traffic.series[i][SPANS - 1] += grown;
      });
      this.policies.set(policy, traffic);
    }
    for (const [outcome, grown] of Object.entries(second.requests)) {
      const series = this.requests.get(outcome) ?? zeroes();
      if (series.length === 0) series.push(...zeroes());
      series[SPANS - 1] += grown;
      this.requests.set(outcome, series);
    }
    addTo(this.decisionTime.at(-1) ?? [], second.decisionTime);
    addTo(this.storeTime.at(-1) ?? [], second.storeTime);
    const failures = sum(Object.values(second.totals.upstreamFailures));
    this.#addFine(second);
    this.recent.push({ at: this.now, requests: second.requests, failures });
    if (this.recent.length > RECENT + 1) this.recent.shift();
    return changed;
  }

  /** @returns {PolicyTraffic} */
  of(policy) {
    const known = this.policies.get(policy);
    return known ?? { sums: COUNTS.map(() => 0), series: COUNTS.map(zeroes) };
  }

  /** Number of spans since the history began. */
  spans() {
    return Math.min(SPANS, this.lastSpan - Math.floor(this.since / this.spanMs) + 1);
  }

  /** Requests per second by outcome, lately. */
  rates() {
    const [first, ...others] = this.recent;
    const seconds = ((this.recent.at(-1)?.at ?? 0) - (first?.at ?? 0)) / 1000;
    const rates = {};
    for (const { requests } of others) {
      for (const [outcome, grown] of Object.entries(requests))
        rates[outcome] = (rates[outcome] ?? 0) + grown / Math.max(1, seconds);
    }
    return rates;
  }

  /** Requests that the application did not answer, in the last seconds. */
  recentFailures() {
    return (this.recent.at(-1)?.failures ?? 0) - (this.recent[0]?.failures ?? 0);
  }

  /** @param {'decisionTime' | 'storeTime'} kind @returns the upper bound in ms, of the last minute; null: no requests */
  quantile(kind, share) {
    return this.quantileOf(
      this[kind].slice(-2).reduce((all, one) => addTo(all, one), []),
      share,
    );
  }

  /** @param {number[]} counts by duration */
  quantileOf(counts, share) {
    const all = sum(counts);
    if (all === 0) return null;
    let seen = 0;
    const at = counts.findIndex((one) => {
      seen += one;
      return seen >= all * share;
    });
    const bound = this.boundsSeconds[at];
    return bound === undefined ? Number.POSITIVE_INFINITY : bound * 1000;
  }

  /** @returns {Step[]} at most `rangeMs` of the past, the oldest first; it begins where the history begins */
  steps(rangeMs) {
    const begin = Math.max(this.since, this.now - rangeMs);
    const fineFrom = this.now - begin <= FINE_RANGE_MS ? (this.fine[0]?.from ?? this.now) : this.now;
    const steps = [];
    for (let i = 0; i < SPANS; i++) {
      const start = (this.lastSpan - SPANS + 1 + i) * this.spanMs;
      const [from, end] = [Math.max(start, this.since), Math.min(start + this.spanMs, this.now)];
      const to = Math.min(end, fineFrom);
      if (to <= from || to <= begin) continue;
      const finer = to === end ? [] : this.fine.filter((one) => one.from < end);
      steps.push({
        from,
        to,
        passed: this.#countAt(PASSED, true, i) - sum(finer.map(({ passed }) => passed)),
        refused: this.#countAt(PASSED, false, i) - sum(finer.map(({ refused }) => refused)),
        times: this.decisionTime[i] ?? [],
      });
    }
    return fineFrom < this.now ? [...steps, ...this.fine] : steps;
  }

  /** Requests of one span whose outcome is one of these, or is not. */
  #countAt(outcomes, isOneOf, i) {
    let all = 0;
    for (const [outcome, series] of this.requests)
      if (outcomes.includes(outcome) === isOneOf) all += series[i] ?? 0;
    return all;
  }

  #addFine({ requests, decisionTime }) {
    const before = this.recent.at(-1)?.at;
    // The first second after connecting includes what happened earlier.
    if (before === undefined) return;
    let step = this.fine.at(-1);
    if (step === undefined || this.now - step.from > FINE_MS) {
      step = { from: before, to: before, passed: 0, refused: 0, times: [] };
      this.fine.push(step);
      while (this.fine[0].to < this.now - FINE_RANGE_MS) this.fine.shift();
    }
    for (const [outcome, grown] of Object.entries(requests))
      step[PASSED.includes(outcome) ? 'passed' : 'refused'] += grown;
    addTo(step.times, decisionTime);
    step.to = this.now;
  }

  /** Drops the oldest spans. */
  #move(spans) {
    const moved = Math.min(spans, SPANS);
    const changed = new Set();
    const shift = (series) => {
      let left = 0;
      for (let i = 0; i < moved; i++) left += series[i];
      series.copyWithin(0, moved).fill(0, SPANS - moved);
      return left;
    };
    for (const [policy, { series, sums }] of this.policies) {
      series.forEach((one, i) => {
        const left = shift(one);
        sums[i] -= left;
        if (left > 0) changed.add(policy);
      });
    }
    for (const series of this.requests.values()) if (series.length > 0) shift(series);
    for (const rows of [this.decisionTime, this.storeTime]) {
      rows.splice(0, moved);
      while (rows.length < SPANS) rows.push([]);
    }
    return changed;
  }
}

export function zeroes() {
  return new Array(SPANS).fill(0);
}

export function sum(values) {
  return values.reduce((all, one) => all + one, 0);
}

function addTo(all, one) {
  one.forEach((value, i) => {
    all[i] = (all[i] ?? 0) + value;
  });
  return all;
}
