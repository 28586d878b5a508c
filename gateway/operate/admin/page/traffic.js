/** The counters of the last hour, in spans of ten seconds: what the gateway sends first, and what each second adds. */

/** The parts of a bar, the lowest first. Rare ones are named only if there are some. */
export const KINDS = [
  { kind: 'passed', text: 'passed', isRare: false },
  { kind: 'failed', text: 'application failed', isRare: true },
  { kind: 'unanswered', text: 'application did not answer', isRare: true },
  { kind: 'refused', text: 'refused', isRare: false },
];
const ADMITTED = ['allowed', 'uncovered'];
const SPANS = 360;
const MINUTE_MS = 60_000;
/** What a request has in place of a status of the application. */
const UNANSWERED = new Map([
  ['none', 'no answer'],
  ['bound', 'refused at a bound'],
]);
/** A chart has at most so many bars. */
const BARS_MAX = 120;

const REQUESTS = 'floodgate_requests_total';
const REPLIES = 'floodgate_replies_total';
const DECISIONS = 'floodgate_policy_decisions_total';
const DEGRADED = 'floodgate_store_degraded_total';
const POLICY_DEGRADED = 'floodgate_policy_degraded_total';
const DECISION_TIME = 'floodgate_decision_duration_seconds_bucket';
const STORE_TIME = 'floodgate_store_duration_seconds_bucket';

/** @typedef {Map<string, number[]>} Metric by the values of its labels, a number for each span, oldest first */
/**
 * A bar of the chart. All bars have the same length. `seconds` is the part of it that is known: the newest bar is not
 * over, and the gateway may have started within the oldest. `degraded` were decided without the store.
 *
 * @typedef {{ from: number, to: number, seconds: number, spans: number[], passed: number, failed: number, unanswered: number, refused: number, degraded: number }} Bar
 */

export class Traffic {
  constructor() {
    /** @type {Map<string, Metric>} by the name of the metric */
    this.metrics = new Map();
    /** Growth per second by series, lately. @type {Record<string, number> | null} null: not known yet */
    this.rates = null;
    this.spanMs = 10_000;
    this.lastSpan = 0;
    /** Start of the history, and time of the last reading. */
    this.since = 0;
    this.now = 0;
  }

  /** Replaces everything. */
  take(whole) {
    this.spanMs = whole.spanSeconds * 1000;
    this.lastSpan = Math.round(Date.parse(whole.lastSpanAt) / this.spanMs);
    this.since = Date.parse(whole.since);
    this.now = Date.parse(whole.at);
    this.rates = null;
    this.metrics = new Map();
    for (const [name, series] of Object.entries(whole.series)) {
      const { metric, labels } = this.#find(name);
      metric.set(labels, series);
    }
  }

  add(second) {
    this.now = Date.parse(second.at);
    this.rates = second.rates;
    const span = Math.floor(this.now / this.spanMs);
    if (span > this.lastSpan) this.#move(span - this.lastSpan);
    this.lastSpan = Math.max(span, this.lastSpan);
    const i = SPANS - 1 - this.lastSpan + Math.round(Date.parse(second.grown.at) / this.spanMs);
    if (i < 0) return;
    for (const [name, grown] of Object.entries(second.grown.series)) {
      const { metric, labels } = this.#find(name);
      const series = metric.get(labels) ?? new Array(SPANS).fill(0);
      series[i] += grown;
      metric.set(labels, series);
    }
  }

  /** @param {string} name of a series: that of its metric, then the values of its labels */
  #find(name) {
    const [metricName = '', ...labels] = name.split(' ');
    const metric = this.of(metricName);
    this.metrics.set(metricName, metric);
    return { metric, labels: labels.join(' ') };
  }

  /** @returns {Metric} */
  of(metric) {
    return this.metrics.get(metric) ?? new Map();
  }

  /** @returns {number[]} a number for each span; empty if the series has not grown in the last hour */
  series(metric, labels) {
    return this.of(metric).get(labels) ?? [];
  }

  /** @returns {number} growth per second of all series of the metric whose labels end with this text */
  rate(metric, labels = '') {
    const found = Object.entries(this.rates ?? {}).filter(
      ([name]) => name.startsWith(`${metric} `) && name.endsWith(labels),
    );
    return sum(found.map(([, value]) => value));
  }

  /** @returns {Record<string, number>} requests per second by outcome */
  outcomes() {
    const found = Object.entries(this.rates ?? {}).filter(([name]) => name.startsWith(`${REQUESTS} `));
    return Object.fromEntries(found.map(([name, value]) => [name.slice(REQUESTS.length + 1), value]));
  }

  /** @returns {Record<string, number[]>} the series of a policy that have grown */
  policy(name) {
    const series = { degraded: this.series(POLICY_DEGRADED, name) };
    for (const decision of ['allowed', 'denied', 'shadow_denied', 'marked'])
      series[decision] = this.series(DECISIONS, `${name} ${decision}`);
    return series;
  }

  /** Number of spans since the history began. */
  spans() {
    return Math.min(SPANS, this.lastSpan - Math.floor(this.since / this.spanMs) + 1);
  }

  /** Requests of the last minute that the application answered, and those that it did not. */
  replies() {
    const classes = [...this.of(REPLIES)].filter(([name]) => name.endsWith('xx'));
    const lately = (series) => sum(series.slice(-MINUTE_MS / this.spanMs));
    return {
      replied: sum(classes.map(([, series]) => lately(series))),
      unanswered: lately(this.series(REPLIES, 'none')),
    };
  }

  /** @param {number} share @returns the upper bound in ms of the decision time in these spans; null: no requests */
  quantile(share, spans = this.#lastMinute()) {
    return this.#quantile(DECISION_TIME, share, spans);
  }

  /** The same for the time of the store in the last minute. */
  storeQuantile(share) {
    return this.#quantile(STORE_TIME, share, this.#lastMinute());
  }

  /** Each bucket of a histogram has the requests that took at most as long as its label says. */
  #quantile(metric, share, spans) {
    const buckets = [...this.of(metric)].map(([le, series]) => ({
      ms: le === '+Inf' ? Number.POSITIVE_INFINITY : Number(le) * 1000,
      requests: sumAt(series, spans),
    }));
    const all = Math.max(0, ...buckets.map(({ requests }) => requests));
    if (all === 0) return null;
    return Math.min(...buckets.filter(({ requests }) => requests >= all * share).map(({ ms }) => ms));
  }

  #lastMinute() {
    const length = MINUTE_MS / this.spanMs;
    return Array.from({ length }, (_, i) => SPANS - length + i);
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
    let [admitted, refused] = [0, 0];
    for (const [outcome, series] of this.of(REQUESTS)) {
      if (ADMITTED.includes(outcome)) admitted += sumAt(series, spans);
      else refused += sumAt(series, spans);
    }
    const [failed, unanswered, atBound] = ['5xx', 'none', 'bound'].map((name) =>
      sumAt(this.series(REPLIES, name), spans),
    );
    // A reply may be in a later span than the decision about its request.
    const passed = Math.max(0, admitted - failed - unanswered - atBound);
    const degraded = sumAt(this.series(DEGRADED, ''), spans);
    return { from, to, seconds, spans, passed, failed, unanswered, refused: refused + atBound, degraded };
  }

  /** @param {Bar[]} bars @returns {[string, number][]} policies that denied requests, those that denied most first */
  deniedIn(bars) {
    const denials = [...this.of(DECISIONS)].filter(([labels]) => labels.endsWith(' denied'));
    return totals(denials, bars)
      .map(([labels, denied]) => pair(labels.slice(0, -' denied'.length), denied))
      .sort(([, a], [, b]) => b - a);
  }

  /** @param {Bar[]} bars @returns {[string, number][]} replies of the application by class of status */
  statusesIn(bars) {
    return totals([...this.of(REPLIES)], bars)
      .map(([name, replies]) => pair(UNANSWERED.get(name) ?? name, replies))
      .sort(([a], [b]) => a.localeCompare(b));
  }

  /** Drops the oldest spans, and series that have not grown since. */
  #move(spans) {
    const moved = Math.min(spans, SPANS);
    for (const metric of this.metrics.values())
      for (const [labels, series] of metric) {
        series.copyWithin(0, moved).fill(0, SPANS - moved);
        if (series.every((value) => value === 0)) metric.delete(labels);
      }
  }
}

/** @param {Record<string, any>} bar @returns {number} the requests of these kinds */
export function allOf(bar, kinds = KINDS) {
  return sum(kinds.map(({ kind }) => bar[kind]));
}

export function sum(values) {
  return values.reduce((all, one) => all + one, 0);
}

/** @param {number[]} series @param {number[]} spans @returns {number} */
function sumAt(series, spans) {
  return sum(spans.map((i) => series[i] ?? 0));
}

/** @param {[string, number[]][]} series @param {Bar[]} bars @returns {[string, number][]} those that are not 0 */
function totals(series, bars) {
  const spans = bars.flatMap((bar) => bar.spans);
  return series.map(([name, one]) => pair(name, sumAt(one, spans))).filter(([, total]) => total > 0);
}

/** @returns {[string, number]} */
function pair(name, value) {
  return [name, value];
}
