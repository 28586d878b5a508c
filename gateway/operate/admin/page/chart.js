/** The chart of requests: what passed, what the application failed, and what was refused. A pointer or the arrow keys read figures. */
import { byId, h, on, patch, redraw } from './dom.js';
import { clockTime, count, latencyText, rate } from './text.js';
import { allOf, KINDS, sum } from './traffic.js';

const LEFT = 48;
const RIGHT = 8;
const TOP = 14;
const BOTTOM = 22;
/** Policies that are named in the figures of a bar. */
const POLICIES_MAX = 5;

/** @typedef {import('./traffic.js').Bar} Bar */

let rangeMs = 900_000;
/** Of the drawing, as last observed: to read it from the page costs a layout. */
let size = { width: 0, height: 0 };
/** The bars and the scale of the last drawing. @type {Bar[]} */
let bars = [];
let scale = scaleOf(0, 1, 1);
/** Time under the pointer, or of the bar that the keys have reached; null: none. */
let readAt = null;
/** Draws the bars as last computed, with the figures of one. */
let showReading = () => {};

/** Positions of times and rates in the drawing. @param {number} highest of the rates */
function scaleOf(first, last, highest) {
  const [width, height] = [size.width - LEFT - RIGHT, size.height - TOP - BOTTOM];
  return {
    x: (at) => LEFT + ((Math.min(last, Math.max(first, at)) - first) / (last - first)) * width,
    y: (value) => size.height - BOTTOM - (value / highest) * height,
    at: (x) => first + ((x - LEFT) / width) * (last - first),
  };
}

/** @param {import('./traffic.js').Traffic} traffic */
export function showChart(traffic) {
  const { from, to, bars: found } = traffic.range(rangeMs);
  bars = found;
  showLegend();
  if (size.width === 0) return;
  const highest = niceAbove(Math.max(...bars.map((bar) => allOf(bar) / bar.seconds), 1));
  scale = scaleOf(from, to, highest);
  const drawing = [rateLines(highest), timeLabels(from, to), KINDS.map((_, i) => area(i))];
  // A pointer moves more often than the bars change.
  showReading = () => {
    const read = readAt === null ? undefined : (bars.find((bar) => bar.to >= readAt) ?? bars.at(-1));
    const cursor = read && { ...extentOf(read), y: TOP, height: size.height - TOP - BOTTOM };
    const chart = byId('chart');
    patch(chart, h('svg', { ...size, 'aria-hidden': 'true' }, drawing, cursor && h('rect.cursor', cursor)));
    const text = read ? figuresOf(traffic, read) : '';
    patch(byId('chart-reading'), text);
    chart.setAttribute('aria-valuemax', bars.length);
    chart.setAttribute('aria-valuenow', bars.indexOf(read ?? bars.at(-1)) + 1);
    chart.setAttribute('aria-valuetext', text || 'Press an arrow key');
  };
  showReading();
}

/** Shows what the bars add up to. */
function showLegend() {
  const totals = KINDS.map((one) => ({ ...one, total: sum(bars.map((bar) => bar[one.kind])) }));
  patch(
    byId('legend'),
    totals.map(({ kind, text, isRare, total }) =>
      h(
        `span.key.${kind}`,
        { id: `legend-${kind}`, hidden: isRare && total === 0 },
        `${text} ${bars.length > 0 ? count(total) : '–'}`,
      ),
    ),
  );
}

/** The next of 1, 2, 5, 10, 20, 50, … */
function niceAbove(value) {
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 5, 10].map((one) => one * power).find((one) => one >= value);
}

/** @param {Bar} bar */
function extentOf(bar) {
  return { x: scale.x(bar.from), width: Math.max(1, scale.x(bar.to) - scale.x(bar.from)) };
}

/** The bars of a kind, on those of the kinds before it, as one shape. */
function area(i) {
  const { kind } = KINDS[i];
  const shapes = bars.map((bar) => {
    if (bar[kind] === 0) return '';
    const below = allOf(bar, KINDS.slice(0, i));
    const base = scale.y(below / bar.seconds);
    // The smallest value is still visible.
    const rise = Math.max(base - scale.y((below + bar[kind]) / bar.seconds), 1.5);
    const { x, width } = extentOf(bar);
    return `M${x.toFixed(1)} ${base.toFixed(1)}v${(-rise).toFixed(1)}h${(width > 4 ? width - 1 : width).toFixed(1)}v${rise.toFixed(1)}z`;
  });
  return h(`path.${kind}`, { d: shapes.join('') });
}

function rateLines(highest) {
  return [0, 0.5, 1].map((share) => {
    const at = Math.round(scale.y(highest * share)) + 0.5;
    return [
      h('path.grid', { d: `M${LEFT} ${at}H${size.width - RIGHT}` }),
      h(
        'text',
        { 'text-anchor': 'end', x: LEFT - 6, y: at + 4 },
        share === 0 ? '0' : `${rate(highest * share)}/s`,
      ),
    ];
  });
}

function timeLabels(first, last) {
  const labels = /** @type {const} */ ([
    [0, 'start'],
    [0.5, 'middle'],
    [1, 'end'],
  ]);
  return labels.map(([share, anchor]) => {
    const at = first + share * (last - first);
    const left = Math.round(scale.x(at)) + 0.5;
    return [
      h('path.grid', { d: `M${left} ${TOP}V${size.height - BOTTOM + 4}` }),
      h('text', { 'text-anchor': anchor, x: left, y: size.height - 5 }, clockTime(at).slice(0, -3)),
    ];
  });
}

/** @param {Bar} bar @returns {string} */
function figuresOf(traffic, bar) {
  const kinds = KINDS.filter(({ kind, isRare }) => !isRare || bar[kind] > 0);
  const quantile = (share) => latencyText(traffic.quantile(share, bar.spans));
  return [
    `${clockTime(bar.from)} – ${clockTime(bar.to)}`,
    ...kinds.map(({ kind, text }) => `${text} ${count(bar[kind])}, ${rate(bar[kind] / bar.seconds)}/s`),
    ...traffic
      .deniedIn(bar.spans)
      .slice(0, POLICIES_MAX)
      .map(([policy, times]) => `${policy} denied ${count(times)}`),
    `p50 ${quantile(0.5)}, p99 ${quantile(0.99)}`,
  ].join(', ');
}

function onKey(event) {
  const at = readAt === null ? bars.length : bars.findIndex(({ to }) => to >= readAt);
  const to = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: bars.length - 1 }[event.key];
  if (event.key === 'Escape') readAt = null;
  else if (to === undefined || bars.length === 0) return;
  else {
    const bar = bars[Math.min(bars.length - 1, Math.max(0, to))];
    readAt = (bar.from + bar.to) / 2;
  }
  event.preventDefault();
  showReading();
}

/** @param {number | null} at */
function read(at) {
  readAt = at;
  showReading();
}

const chart = byId('chart');
on('chart', 'pointermove', ({ clientX }) => read(scale.at(clientX - chart.getBoundingClientRect().left)));
on('chart', 'pointerleave', () => read(null));
on('chart', 'blur', () => read(null));
on('chart', 'keydown', onKey);
on('range', 'change', ({ target }) => {
  rangeMs = Number(target.value) * 1000;
  redraw();
});
new ResizeObserver(([{ contentRect }]) => {
  size = { width: contentRect.width, height: contentRect.height };
  redraw();
}).observe(chart);
