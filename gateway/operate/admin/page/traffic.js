/** The traffic of the last hour: the history that the gateway sends first, and what each second adds to it after that. */

export const COUNTS = ['allowed', 'denied', 'shadowDenied', 'degraded', 'marked'];
/** The parts of a bar, the lowest first. Rare ones are named only if there are some. */
export const KINDS = [
  { kind: 'passed', text: 'passed', isRare: false },
  { kind: 'failed', text: 'application failed', isRare: true },
  { kind: 'unanswered', text: 'application did not answer', isRare: true },
  { kind: 'refused', text: 'refused', isRare: false },
];
const ADMITTED = ['allowed', 'uncovered'];
const SPANS = 360;
/** Failures of the application are recent, and visitors are counted, for this number of seconds. */
const RECENT = 5;
/** What a request has in place of a status of the application. */
const UNANSWERED = new Map([
  ['none', 'no answer'],
  ['bound', 'refused at a bound'],
]);
/** A chart has at most so many bars. */
const BARS_MAX = 120;

/** @typedef {{ sums: number[], series: number[][] }} PolicyTraffic in the order of COUNTS */
/**
 * A bar of the chart. All bars have the same length. `seconds` is the part of it that is known: the newest bar is not
 * over, and the gateway may have started within the oldest.
 *
 * @typedef {{ from: number, to: number, seconds: number, spans: number[], passed: number, failed: number, unanswered: number, refused: number, times: number[] }} Bar
 */

export class Traffic {
  constructor() {
    /** @type {Map<string, PolicyTraffic>} */
    this.policies = new Map();
    /** @type {Map<string, number[]>} by outcome */
    this.requests = new Map();
    /** @type {Map<string, number[]>} by class of the application's status */
    this.statuses = new Map();
    /** @type {number[][]} by span, requests by their duration */
    this.decisionTime = [];
    /** @type {number[][]} */
    this.storeTime = [];
    /** @type {number[]} */
    this.boundsSeconds = [];
    /** Requests per second by outcome, lately. @type {Record<string, number> | null} null: not known yet */
    this.rates = null;
    this.spanMs = 10_000;
    this.lastSpan = 0;
    /** Start of the history, and the time until which all requests are counted. */
    this.since = 0;
    this.now = 0;
    /** Totals of the newest seconds. @type {number[]} */
    this.failures = [];
    /** @type {{ at: number, regulars: number, newcomers: number, denied: number, shadowDenied: number, waiting: number, overloaded: number, acts: boolean, actsFrom: string | null }[]} */
    this.visitors = [];
  }

  /** Replaces everything. */
  take(whole) {
    this.spanMs = whole.spanSeconds * 1000;
    this.lastSpan = Math.round(Date.parse(whole.lastSpanAt) / this.spanMs);
    this.since = Math.floor(Date.parse(whole.since) / 1000) * 1000;
    this.now = Date.parse(whole.until);
    this.policies = new Map(
      whole.policies.map((one) => {
        const series = COUNTS.map((name) => one[name] ?? zeroes());
        return [one.policy, { series, sums: series.map(sum) }];
      }),
    );
    this.requests = new Map(Object.entries(whole.requests));
    this.statuses = new Map(Object.entries(whole.statuses));
    this.decisionTime = whole.decisionTime;
    this.storeTime = whole.storeTime;
    this.boundsSeconds = whole.boundsSeconds;
    this.rates = null;
    this.failures = [];
    this.visitors = [];
  }

  /** @returns {Set<string>} the policies whose numbers changed */
  add(second) {
    this.now = Date.parse(second.at);
    this.rates = second.rates;
    const span = Math.floor(this.now / this.spanMs);
    const changed = span > this.lastSpan ? this.#move(span - this.lastSpan) : new Set();
    this.lastSpan = Math.max(span, this.lastSpan);
    for (const grown of second.spans) {
      const i = SPANS - 1 - this.lastSpan + Math.round(Date.parse(grown.at) / this.spanMs);
      if (i >= 0) this.#grow(grown, i, changed);
    }
    this.failures.push(sum(Object.values(second.totals.upstreamFailures)));
    if (this.failures.length > RECENT + 1) this.failures.shift();
    const { newcomers } = second.totals;
    this.visitors =
      newcomers === null ? [] : [...this.visitors, { at: this.now, ...newcomers }].slice(-RECENT - 1);
    return changed;
  }

  /** @param {any} grown @param {number} i of the span @param {Set<string>} changed gets the names of the policies */
  #grow(grown, i, changed) {
    const { policies, requests, statuses, decisionTime, storeTime } = grown;
    for (const [policy, counts] of Object.entries(policies)) {
      changed.add(policy);
      const traffic = this.of(policy);
      counts.forEach((count, k) => {
        traffic.sums[k] += count;
        traffic.series[k][i] += count;
      });
      this.policies.set(policy, traffic);
    }
    addByName(this.requests, requests, i);
    addByName(this.statuses, statuses, i);
    addTo(this.decisionTime[i] ?? [], decisionTime);
    addTo(this.storeTime[i] ?? [], storeTime);
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

  /** Requests of the last minute that the application answered, and those that it did not. */
  replies() {
    const of = (name) => sum((this.statuses.get(name) ?? []).slice(-60_000 / this.spanMs));
    const names = [...this.statuses.keys()].filter((name) => name.endsWith('xx'));
    return { replied: sum(names.map(of)), unanswered: of('none') };
  }

  /** Requests that the application did not answer, in the last seconds. */
  recentFailures() {
    return (this.failures.at(-1) ?? 0) - (this.failures[0] ?? 0);
  }

  /** Requests per second of regulars and newcomers, in the last seconds, and how many wait; null: the file has no newcomers. */
  visitorRates() {
    const [first, last] = [this.visitors[0], this.visitors.at(-1)];
    if (first === undefined || last === undefined) return null;
    const seconds = Math.max(1, (last.at - first.at) / 1000);
    // The counters of a gateway that was restarted begin at zero.
    const of = (name) => Math.max(0, last[name] - first[name]) / seconds;
    const { acts, actsFrom, waiting } = last;
    return {
      acts,
      actsFrom,
      waiting,
      regulars: of('regulars'),
      newcomers: of('newcomers'),
      denied: of('denied'),
      shadowDenied: of('shadowDenied'),
      overloaded: of('overloaded'),
    };
  }

  /** @param {'decisionTime' | 'storeTime'} kind @returns the upper bound in ms, of the last minute; null: no requests */
  quantile(kind, share) {
    const minute = this[kind].slice(-60_000 / this.spanMs);
    return this.quantileOf(
      minute.reduce((all, one) => addTo(all, one), []),
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

  /** @returns {{ from: number, to: number, bars: Bar[] }} exactly `rangeMs`; bars from before the start are missing */
  range(rangeMs) {
    const barMs = Math.max(this.spanMs, rangeMs / BARS_MAX);
    const to = Math.ceil(this.now / barMs) * barMs;
    const bars = [];
    for (let from = to - rangeMs; from < to; from += barMs) {
      const seconds = (Math.min(from + barMs, this.now) - Math.max(from, this.since)) / 1000;
      if (seconds > 0) bars.push(this.#bar(from, from + barMs, seconds));
    }
    return { from: to - rangeMs, to, bars };
  }

  #bar(from, to, seconds) {
    const first = SPANS - 1 - this.lastSpan + Math.round(from / this.spanMs);
    const length = Math.round((to - from) / this.spanMs);
    const spans = Array.from({ length }, (_, i) => first + i).filter((i) => i >= 0 && i < SPANS);
    const times = spans.reduce((all, i) => addTo(all, this.decisionTime[i] ?? []), []);
    let [admitted, refused] = [0, 0];
    const inSpans = (series = []) => sum(spans.map((i) => series[i] ?? 0));
    for (const [outcome, series] of this.requests) {
      if (ADMITTED.includes(outcome)) admitted += inSpans(series);
      else refused += inSpans(series);
    }
    const [failed, unanswered, atBound] = ['5xx', 'none', 'bound'].map((name) =>
      inSpans(this.statuses.get(name)),
    );
    const passed = Math.max(0, admitted - failed - unanswered - atBound);
    return { from, to, seconds, spans, passed, failed, unanswered, refused: refused + atBound, times };
  }

  /** @param {Bar[]} bars @returns {[string, number][]} policies that denied requests, those that denied most first */
  deniedIn(bars) {
    const spans = bars.flatMap((bar) => bar.spans);
    return [...this.policies]
      .map(([policy, { series }]) => pair(policy, sum(spans.map((i) => series[1][i]))))
      .filter(([, denied]) => denied > 0)
      .sort(([, a], [, b]) => b - a);
  }

  /** @param {Bar[]} bars @returns {[string, number][]} replies of the application by class of status */
  statusesIn(bars) {
    const spans = bars.flatMap((bar) => bar.spans);
    return [...this.statuses]
      .map(([name, series]) => pair(UNANSWERED.get(name) ?? name, sum(spans.map((i) => series[i] ?? 0))))
      .filter(([, replies]) => replies > 0)
      .sort(([a], [b]) => a.localeCompare(b));
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
    for (const series of [...this.requests.values(), ...this.statuses.values()])
      if (series.length > 0) shift(series);
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

/** @param {Record<string, any>} bar @returns {number} the requests of these kinds */
export function allOf(bar, kinds = KINDS) {
  return sum(kinds.map(({ kind }) => bar[kind]));
}

/** @returns {[string, number]} */
function pair(name, value) {
  return [name, value];
}

/** @param {Map<string, number[]>} known @param {Record<string, number>} counts @param {number} i of the span */
function addByName(known, counts, i) {
  for (const [name, count] of Object.entries(counts)) {
    const series = known.get(name) ?? [];
    if (series.length === 0) series.push(...zeroes());
    series[i] += count;
    known.set(name, series);
  }
}

function addTo(all, one) {
  one.forEach((value, i) => {
    all[i] = (all[i] ?? 0) + value;
  });
  return all;
}
