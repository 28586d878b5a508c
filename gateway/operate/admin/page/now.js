/** What happens at the moment: cards, and the chart of the hour. */
import { byId, clockTime, count, el, rate, setText, svg } from './dom.js';
import { sum, zeroes } from './traffic.js';

const HEIGHT = 100;
const DENIED = ['denied', 'banned', 'unavailable', 'malformed'];

/** Name -> the two lines of its card. */
const cards = new Map();

function card(name, value, more, kind = '') {
  let lines = cards.get(name);
  if (lines === undefined) {
    lines = [el('dd'), el('dd', { class: 'soft' })];
    cards.set(name, lines);
    byId('cards').append(el('div', {}, el('dt', {}, name), ...lines));
  }
  const [first, second] = lines;
  setText(first, value);
  if (first.className !== kind) first.className = kind;
  setText(second, more);
}

export function showNow(traffic, second) {
  const rates = traffic.rates();
  const all = sum(Object.values(rates));
  const denied = rates.denied ?? 0;
  card('Requests', `${rate(all)}/s`, 'all that arrive');
  card(
    'Denied by policies',
    `${rate(denied)}/s`,
    all === 0 ? 'nothing arrives' : `${rate((100 * denied) / all)} % of them`,
    denied > 0 ? 'bad' : '',
  );
  const others = DENIED.slice(1).filter((outcome) => (rates[outcome] ?? 0) > 0);
  card(
    'Refused otherwise',
    `${rate(sum(others.map((outcome) => rates[outcome])))}/s`,
    others.length === 0 ? 'bans, outages, malformed' : others.join(', '),
  );
  card(
    'Added latency',
    latency(traffic, 'decisionTime', 0.5),
    `99 %: ${latency(traffic, 'decisionTime', 0.99)}`,
  );
  showStore(traffic, second);
  const { store, processes, totals } = second;
  card(
    'Processes',
    String(processes),
    store.kind === 'redis' ? `${count(store.replicas)} share the store` : 'nothing is shared',
  );
  const upstream = sum(Object.values(totals.upstreamFailures));
  card(
    'Application',
    upstream === 0 ? 'no failures' : `${count(upstream)} failures`,
    upstream === 0
      ? 'requests it did not answer, since the start'
      : `since the start: ${listed(totals.upstreamFailures)}`,
  );
}

function showStore(traffic, { store, processes, totals }) {
  if (store.kind === 'memory') {
    card('Store', 'memory', 'counters of this process');
    return;
  }
  const failures = sum(Object.values(totals.storeFailures));
  const failed = failures === 0 ? '' : `; failed checks: ${listed(totals.storeFailures)}`;
  if (store.available)
    card(
      'Store',
      'available',
      `breaker closed; 99 %: ${latency(traffic, 'storeTime', 0.99)}${failed}`,
      'good',
    );
  else
    card(
      'Store',
      'away',
      `breaker open in ${store.processesWithout} of ${processes} since ${store.awaySince === null ? 'just now' : clockTime(store.awaySince)}: each policy decides by its onStoreFailure${failed}`,
      'bad',
    );
}

function listed(counts) {
  return Object.entries(counts)
    .filter(([, value]) => value > 0)
    .map(([name, value]) => `${name} ${count(value)}`)
    .join(', ');
}

function latency(traffic, kind, share) {
  const ms = traffic.quantile(kind, share);
  if (ms === null) return '–';
  return ms === Number.POSITIVE_INFINITY ? 'over 10 s' : `≤ ${ms} ms`;
}

/** Stacked: what passed, and on it what was refused. */
export function showHour(traffic) {
  const of = (outcome) => {
    const series = traffic.requests.get(outcome) ?? [];
    return series.length === 0 ? zeroes() : series;
  };
  const passed = added([of('allowed'), of('uncovered')]);
  const refused = added(DENIED.map(of));
  const highest = Math.max(1, ...passed.map((value, i) => value + refused[i]));
  const seconds = traffic.spanMs / 1000;
  const first = new Date((traffic.lastSpan - passed.length + 1) * traffic.spanMs).toISOString();
  byId('hour-legend').replaceChildren(
    el('span', { class: 'key allowed' }, `passed ${count(sum(passed))}`),
    el('span', { class: 'key denied' }, `refused ${count(sum(refused))}`),
    el('span', { class: 'soft' }, `at most ${rate(highest / seconds)}/s`),
  );
  byId('hour-chart').replaceChildren(
    svg(
      'svg',
      {
        class: 'bars',
        viewBox: `0 0 ${passed.length} ${HEIGHT}`,
        preserveAspectRatio: 'none',
        role: 'img',
        'aria-label': `Requests of the last hour: ${count(sum(passed))} passed, ${count(sum(refused))} refused, at most ${rate(highest / seconds)} a second`,
      },
      path('fill-allowed', passed, zeroes(), highest),
      path('fill-denied', refused, passed, highest),
    ),
    el('div', { class: 'axis' }, el('span', {}, clockTime(first)), el('span', {}, 'now')),
  );
}

/** All bars of one kind, as one shape. */
export function path(kind, values, from, highest) {
  const bars = values.map((value, x) => {
    if (value === 0) return '';
    // What is there is seen, however little it is.
    const height = Math.max((value / highest) * HEIGHT, 1.5);
    const y = Math.max(0, HEIGHT - (from[x] / highest) * HEIGHT - height);
    return `M${x + 0.05} ${y.toFixed(1)}h.9v${height.toFixed(1)}h-.9z`;
  });
  return svg('path', { class: kind, d: bars.join('') });
}

function added(all) {
  return zeroes().map((_, i) => sum(all.map((series) => series[i] ?? 0)));
}
