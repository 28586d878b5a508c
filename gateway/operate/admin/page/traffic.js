/** The counters of the last hour, in spans of ten seconds: what the gateway sends first, and what each second adds. */

/** The parts of a bar, the lowest first. Rare ones are named only if there are some. */
export const KINDS = [
  { kind: 'passed', text: 'passed', isRare: false },
  { kind: 'failed', text: 'application failed', isRare: true },
  { kind: 'unanswered', text: 'application did not answer', isRare: true },
  { kind: 'refused', text: 'refused', isRare: false },
];
const SPANS = 360;
const MINUTE_MS = 60_000;
/** A chart has at most so many bars. */
const BARS_MAX = 120;

/** Outcomes of requests that the policies let through. */
const PASSED = new Set(['allowed', 'uncovered']);

const REQUESTS = 'floodgate_requests_total';
const REPLIES = 'floodgate_replies_total';
const DECISIONS = 'floodgate_policy_decisions_total';
const POLICY_DEGRADED = 'floodgate_policy_degraded_total';
const DECISION_TIME = 'floodgate_decision_duration_seconds_bucket';
const STORE_TIME = 'floodgate_store_duration_seconds_bucket';

/**
 * Values by metric, then by the values of its labels: for a series a number for each span, oldest first.
 *
 * @template T
 * @typedef {Map<string, Map<string, T>>} Metrics
 */
/**
 * A bar of the chart. All bars have the same length. `seconds` is the part of it that is known: the newest bar is not
 * over, and the gateway may have started within the oldest.
 *
 * @typedef {{ from: number, to: number, seconds: number, spans: number[], passed: number, failed: number, unanswered: number, refused: number }} Bar
 */

/** @param {Record<string, any>} series by name: that of the metric, then the values of its labels @returns {Metrics<any>} */
function byMetric(series) {
  const metrics = new Map();
  for (const [name, value] of Object.entries(series)) {
    const [metric, ...labels] = name.split(' ');
    if (!metrics.has(metric)) metrics.set(metric, new Map());
    metrics.get(metric).set(labels.join(' '), value);
  }
  return metrics;
}

export class Traffic {
  constructor() {
    /** @type {Metrics<number[]>} */
    this.metrics = new Map();
    /** Growth per second, lately. @type {Metrics<number> | null} null: not known yet */
    this.rates = null;
    this.spanMs = 10_000;
    this.lastSpan = 0;
    /** Start of the history, and time of the last reading. */
    this.since = 0;
    this.now = 0;
  }

  /** Replaces everything. */
  take(all) {
    this.spanMs = all.spanSeconds * 1000;
    this.lastSpan = Math.round(Date.parse(all.lastSpanAt) / this.spanMs);
    this.since = Date.parse(all.since);
    this.now = Date.parse(all.at);
    this.rates = null;
    this.metrics = byMetric(all.series);
  }

  add(second) {
    this.now = Date.parse(second.at);
    this.rates = byMetric(second.rates);
    const span = Math.floor(this.now / this.spanMs);
    if (span > this.lastSpan) this.#move(span - this.lastSpan);
    this.lastSpan = Math.max(span, this.lastSpan);
    const i = this.#indexOf(Date.parse(second.grown.at));
    if (i < 0) return;
    for (const [metric, grown] of byMetric(second.grown.series)) {
      if (!this.metrics.has(metric)) this.metrics.set(metric, new Map());
      for (const [labels, value] of grown) {
        const series = this.metrics.get(metric)?.get(labels) ?? new Array(SPANS).fill(0);
        series[i] += value;
        this.metrics.get(metric)?.set(labels, series);
      }
    }
  }

  /** @returns {number[]} empty if the series has not grown in the last hour */
  #series(metric, labels) {
    return this.metrics.get(metric)?.get(labels) ?? [];
  }

  /** @param {number} at ms @returns the index of the span that begins then; below 0 if it is too old */
  #indexOf(at) {
    return SPANS - 1 - this.lastSpan + Math.round(at / this.spanMs);
  }

  /** @returns {number[]} the spans of this time that the history has */
  #between(from, to) {
    const length = Math.round((to - from) / this.spanMs);
    return Array.from({ length }, (_, i) => this.#indexOf(from) + i).filter((i) => i >= 0 && i < SPANS);
  }

  #lastMinute() {
    const end = (this.lastSpan + 1) * this.spanMs;
    return this.#between(end - MINUTE_MS, end);
  }

  /** @returns {[string, number][]} what each series of the metric has in these spans, by its labels */
  #sums(metric, spans) {
    return [...(this.metrics.get(metric) ?? [])].map(([labels, series]) => [
      labels,
      sum(spans.map((i) => series[i] ?? 0)),
    ]);
  }

  /** @returns {number} growth per second of all series of the metric whose labels end with this text */
  rate(metric, labels = '') {
    const rates = [...(this.rates?.get(metric) ?? [])];
    return sum(rates.filter(([name]) => name.endsWith(labels)).map(([, value]) => value));
  }

  /**
   * Requests per second at the moment. Whole and parts are of the same reading, so that no part is larger.
   *
   * @returns {{ all: number, refused: number, reasons: [string, number][] }}
   */
  flow() {
    const outcomes = [...(this.rates?.get(REQUESTS) ?? [])];
    const bound = this.rate(REPLIES, 'bound');
    const refusals = outcomes.filter(([outcome]) => !PASSED.has(outcome));
    const reasons = /** @type {[string, number][]} */ ([...refusals, ['at a bound', bound]]);
    const refused = sum(reasons.map(([, value]) => value));
    // A bound may refuse later than the policies admit.
    const all = Math.max(sum(outcomes.map(([, value]) => value)), refused);
    return { all, refused, reasons: reasons.filter(([, value]) => value > 0) };
  }

  /** @returns {Record<string, number>} the decisions of a policy in the last hour */
  policy(name) {
    const decided = (decision) => sum(this.#series(DECISIONS, `${name} ${decision}`));
    return {
      denied: decided('denied'),
      allowed: decided('allowed'),
      shadowDenied: decided('shadow_denied'),
      marked: decided('marked'),
      degraded: sum(this.#series(POLICY_DEGRADED, name)),
    };
  }

  /** @returns {Record<string, number>} replies of the application in the last minute by class of status */
  replies() {
    return Object.fromEntries(this.#sums(REPLIES, this.#lastMinute()));
  }

  /**
   * Each bucket of a histogram has the requests that took at most as long as its label says.
   *
   * @param {number} share
   * @returns the upper bound in ms of the decision time in these spans; null: no requests
   */
  quantile(share, spans = this.#lastMinute(), metric = DECISION_TIME) {
    const buckets = this.#sums(metric, spans);
    const all = Math.max(0, ...buckets.map(([, requests]) => requests));
    if (all === 0) return null;
    const within = buckets.filter(([, requests]) => requests >= all * share);
    return Math.min(...within.map(([le]) => (le === '+Inf' ? Number.POSITIVE_INFINITY : Number(le) * 1000)));
  }

  /** The same for the time of the store in the last minute. */
  storeQuantile(share) {
    return this.quantile(share, undefined, STORE_TIME);
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
    const spans = this.#between(from, to);
    const { allowed = 0, uncovered = 0, ...others } = Object.fromEntries(this.#sums(REQUESTS, spans));
    const replies = Object.fromEntries(this.#sums(REPLIES, spans));
    const { '5xx': failed = 0, none: unanswered = 0, bound = 0 } = replies;
    // A reply may be in a later span than the decision about its request.
    const passed = Math.max(0, allowed + uncovered - failed - unanswered - bound);
    const refused = sum(Object.values(others)) + bound;
    return { from, to, seconds, spans, passed, failed, unanswered, refused };
  }

  /** @param {number[]} spans @returns {[string, number][]} policies that denied requests, those that denied most first */
  deniedIn(spans) {
    const counts = this.#sums(DECISIONS, spans).filter(
      ([labels, denied]) => labels.endsWith(' denied') && denied > 0,
    );
    const byPolicy = Object.fromEntries(
      counts.map(([labels, denied]) => [labels.slice(0, -' denied'.length), denied]),
    );
    return Object.entries(byPolicy).sort(([, a], [, b]) => b - a);
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
