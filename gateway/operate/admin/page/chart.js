/** The chart of requests: what passed, what the application failed, and what was refused. A pointer or the arrow keys read figures. */
import { byId, clockTime, count, el, rate, setText, svg } from './dom.js';
import { latencyText } from './now.js';
import { allOf, KINDS, sum } from './traffic.js';

const LEFT = 48;
const RIGHT = 8;
const TOP = 14;
const BOTTOM = 22;
const DEFAULT_RANGE_S = 900;
/** Distances of the labels of the time axis, in s. */
const TICKS_S = [5, 15, 30, 60, 120, 300, 600, 900];
const LABEL_WIDTH = 70;
/** Policies that are named in the figures of a bar, and of all bars. */
const POLICIES_MAX = 5;

/** @type {import('./traffic.js').Traffic} */
let shown = null;
/** @type {import('./traffic.js').Bar[]} */
let bars = [];
let rangeMs = DEFAULT_RANGE_S * 1000;
/** Of the drawing, as last observed: to read it from the page costs a layout. */
let width = 0;
let height = 0;
/** Time under the pointer, or of the bar that the keys have reached; null: none. */
let readAt = null;

/** @param {import('./traffic.js').Traffic} traffic */
export function showChart(traffic = shown) {
  shown = traffic;
  if (traffic === null || width === 0) return;
  const range = traffic.range(rangeMs);
  const [first, last] = [range.from, range.to];
  bars = range.bars;
  const highest = niceAbove(Math.max(...bars.map((bar) => perSecond(bar, allOf(bar))), 1));
  const scale = {
    x: (at) =>
      LEFT + ((Math.min(last, Math.max(first, at)) - first) / (last - first)) * (width - LEFT - RIGHT),
    y: (value) => height - BOTTOM - (value / highest) * (height - TOP - BOTTOM),
    at: (x) => first + ((x - LEFT) / (width - LEFT - RIGHT)) * (last - first),
    first,
    last,
  };
  byId('chart-drawing').replaceChildren(
    svg(
      'svg',
      { width, height, 'aria-hidden': 'true' },
      ...rateLines(highest, scale),
      ...timeLabels(scale),
      ...KINDS.map((_, i) => area(i, scale)),
    ),
  );
  byId('chart').scale = scale;
  showTotals(traffic);
  showReading();
}

/** Shows what the bars add up to, by kind, by policy and by status. */
function showTotals(traffic) {
  const isKnown = bars.length > 0;
  const none = isKnown ? 'none' : '–';
  for (const { kind, text, isRare } of KINDS) {
    const total = sum(bars.map((bar) => bar[kind]));
    byId(`legend-${kind}`).hidden = isRare && total === 0;
    setText(byId(`legend-${kind}`), `${text} ${isKnown ? count(total) : '–'}`);
  }
  setText(byId('chart-denied'), listed(traffic.deniedIn(bars), POLICIES_MAX) || none);
  setText(byId('chart-statuses'), listed(traffic.statusesIn(bars)) || none);
}

function listed(counts, most = counts.length) {
  const more = counts.length - most;
  const texts = counts.slice(0, most).map(([name, value]) => `${name} ${count(value)}`);
  return [...texts, ...(more > 0 ? [`${count(more)} more`] : [])].join(', ');
}

function perSecond({ seconds }, value) {
  return value / seconds;
}

/** The next of 1, 2, 5, 10, 20, 50, … */
function niceAbove(value) {
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 5, 10].map((one) => one * power).find((one) => one >= value);
}

/** The bars of a kind, on those of the kinds before it, as one shape. */
function area(i, { x, y }) {
  const { kind } = KINDS[i];
  const shapes = bars.map((bar) => {
    if (bar[kind] === 0) return '';
    const below = allOf(bar, KINDS.slice(0, i));
    const base = y(perSecond(bar, below));
    // The smallest value is still visible.
    const rise = Math.max(base - y(perSecond(bar, below + bar[kind])), 1.5);
    const [left, right] = [x(bar.from), x(bar.to)];
    const gap = right - left > 4 ? 1 : 0;
    return `M${left.toFixed(1)} ${base.toFixed(1)}v${(-rise).toFixed(1)}H${(right - gap).toFixed(1)}v${rise.toFixed(1)}z`;
  });
  return svg('path', { class: `fill-${kind}`, d: shapes.join('') });
}

function rateLines(highest, { y }) {
  return [0, 0.5, 1].flatMap((share) => {
    const at = Math.round(y(highest * share)) + 0.5;
    return [
      svg('path', { class: 'grid', d: `M${LEFT} ${at}H${width - RIGHT}` }),
      svg('text', { x: LEFT - 6, y: at + 4, class: 'end' }, share === 0 ? '0' : `${rate(highest * share)}/s`),
    ];
  });
}

function timeLabels({ x, first, last }) {
  const labels = Math.max(1, (width - LEFT - RIGHT) / LABEL_WIDTH);
  const stepMs = 1000 * (TICKS_S.find((one) => (last - first) / 1000 / one <= labels) ?? 900);
  // Whole minutes of the browser's zone.
  const zoneMs = new Date(last).getTimezoneOffset() * 60_000;
  const lines = [];
  for (let at = Math.ceil((first - zoneMs) / stepMs) * stepMs + zoneMs; at <= last; at += stepMs) {
    const left = Math.round(x(at)) + 0.5;
    lines.push(svg('path', { class: 'grid', d: `M${left} ${TOP}V${height - BOTTOM + 4}` }));
    const text = new Date(at).toLocaleTimeString('en-GB').slice(0, stepMs < 60_000 ? 8 : 5);
    if (left > LEFT + 10 && left < width - 30)
      lines.push(svg('text', { x: left, y: height - 5, class: 'middle' }, text));
  }
  return lines;
}

/** The figures at the pointer. */
function showReading() {
  const tip = byId('chart-tip');
  const cursor = byId('chart-cursor');
  const bar = readAt === null ? undefined : (bars.find(({ to }) => to >= readAt) ?? bars.at(-1));
  tip.hidden = cursor.hidden = bar === undefined;
  if (bar === undefined) return;
  const { x } = byId('chart').scale;
  const lines = [
    `${clockTime(bar.from)} – ${clockTime(bar.to)}`,
    ...KINDS.filter(({ kind, isRare }) => !isRare || bar[kind] > 0).map(
      ({ kind, text }) => `${text} ${count(bar[kind])}, ${rate(perSecond(bar, bar[kind]))}/s`,
    ),
    ...shown
      .deniedIn([bar])
      .slice(0, POLICIES_MAX)
      .map(([policy, denied]) => `${policy} denied ${count(denied)}`),
    ...(bar.degraded > 0 ? [`decided without the store ${count(bar.degraded)}`] : []),
    `application ${listed(shown.statusesIn([bar])) || 'got nothing'}`,
    `p50 ${latencyText(shown.quantile(0.5, bar.spans))}, p99 ${latencyText(shown.quantile(0.99, bar.spans))}`,
  ];
  tip.replaceChildren(...lines.map((line) => el('div', {}, line)));
  const middle = (x(bar.from) + x(bar.to)) / 2;
  cursor.style.left = `${x(bar.from)}px`;
  cursor.style.width = `${Math.max(1, x(bar.to) - x(bar.from))}px`;
  const isRight = middle > width / 2;
  tip.style.left = isRight ? 'auto' : `${middle + 10}px`;
  tip.style.right = isRight ? `${width - middle + 10}px` : 'auto';
  const chart = byId('chart');
  chart.setAttribute('aria-valuemax', String(bars.length));
  chart.setAttribute('aria-valuenow', String(bars.indexOf(bar) + 1));
  chart.setAttribute('aria-valuetext', lines.join(', '));
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

export function wireChart() {
  const chart = byId('chart');
  const read = (at) => {
    readAt = at;
    showReading();
  };
  chart.addEventListener('pointermove', ({ clientX }) => {
    if (chart.scale !== undefined) read(chart.scale.at(clientX - chart.getBoundingClientRect().left));
  });
  chart.addEventListener('pointerleave', () => read(null));
  chart.addEventListener('blur', () => read(null));
  chart.addEventListener('keydown', onKey);
  byId('ranges').addEventListener('change', ({ target }) => {
    rangeMs = Number(target.value) * 1000;
    showChart();
  });
  new ResizeObserver(([{ contentRect }]) => {
    ({ width, height } = contentRect);
    showChart();
  }).observe(chart);
}
