/** The last hour as this page holds it: what the gateway told at the beginning, and what each second adds. */

export const COUNTS = ['allowed', 'denied', 'shadowDenied', 'degraded'];
const SPANS = 120;
/** Rates are of so many seconds. */
const RECENT = 5;

/** @typedef {{ sums: number[], series: number[][] }} PolicyTraffic by the order of COUNTS */

export class Traffic {
  constructor() {
    /** @type {Map<string, PolicyTraffic>} */
    this.policies = new Map();
    /** @type {Map<string, number[]>} by outcome */
    this.requests = new Map();
    /** @type {number[][]} how many took how long, span by span */
    this.decisionTime = [];
    /** @type {number[][]} */
    this.storeTime = [];
    /** @type {number[]} */
    this.boundsSeconds = [];
    this.spanMs = 30_000;
    this.lastSpan = 0;
    /** @type {{ at: number, requests: Record<string, number> }[]} */
    this.recent = [];
  }

  /** Begins anew. */
  take(whole) {
    this.spanMs = whole.spanSeconds * 1000;
    this.lastSpan = Math.round(Date.parse(whole.lastSpanAt) / this.spanMs);
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
    this.recent = [];
  }

  /** @returns {Set<string>} the policies whose numbers changed */
  add(second) {
    const span = Math.floor(Date.parse(second.at) / this.spanMs);
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
    this.recent.push({ at: Date.parse(second.at), requests: second.requests });
    if (this.recent.length > RECENT + 1) this.recent.shift();
    return changed;
  }

  /** @returns {PolicyTraffic} */
  of(policy) {
    const known = this.policies.get(policy);
    return known ?? { sums: COUNTS.map(() => 0), series: COUNTS.map(zeroes) };
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

  /** @param {'decisionTime' | 'storeTime'} kind @returns what so large a share took at most, in ms; null: none lately */
  quantile(kind, share) {
    const counts = this[kind].slice(-2).reduce((all, one) => addTo(all, one), []);
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

  /** Time goes on: the oldest spans make room. */
  #move(spans) {
    const moved = Math.min(spans, SPANS);
    const changed = new Set();
    const shift = (series) => {
      const left = sum(series.splice(0, moved));
      series.push(...zeroes().slice(0, moved));
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
