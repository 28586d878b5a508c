/** The state of the gateway at the moment: requests, denials and latency with their trends, and a line for everything else. */
import { byId, clockTime, count, el, rate, setText, svg } from './dom.js';
import { allOf, sum } from './traffic.js';

const REFUSED_OTHERWISE = ['banned', 'unavailable', 'malformed', 'undecided'];
/** The gateway adds this much at most when it is well. */
const P99_MS_MAX = 100;
const TREND_MS = 900_000;
const HEIGHT = 100;

/** Name -> the parts of its card. */
const cards = new Map();

/** @param {string[]} values the first one is large */
function card(
  name,
  values,
  more,
  { isBad = false, trend = [], highest = Math.max(...trend), kind = 'allowed' } = {},
) {
  let parts = cards.get(name);
  if (parts === undefined) {
    parts = {
      values: values.map(() => el('span')),
      more: el('dd', { class: 'soft' }),
      trend: el('dd', { class: 'trend', 'aria-hidden': 'true' }),
    };
    cards.set(name, parts);
    const value = el('dd', { class: values.length > 1 ? 'value pair' : 'value' }, ...parts.values);
    byId('cards').append(el('div', {}, el('dt', {}, name), value, parts.more, parts.trend));
  }
  values.forEach((value, i) => {
    setText(parts.values[i], value);
  });
  parts.values.at(-1).classList.toggle('bad', isBad);
  setText(parts.more, more);
  parts.trend.replaceChildren(trendOf(trend, highest, isBad ? 'denied' : kind));
}

/** @param {number[]} values @param {number} highest of the axis */
function trendOf(values, highest, kind) {
  const points = (values.length === 1 ? [...values, ...values] : values).map(
    (value, x) =>
      `${x},${(HEIGHT - (value / Math.max(highest, Number.MIN_VALUE)) * (HEIGHT - 8) - 4).toFixed(1)}`,
  );
  const last = Math.max(1, values.length - 1);
  return svg(
    'svg',
    { class: `line-${kind}`, viewBox: `0 0 ${last} ${HEIGHT}`, preserveAspectRatio: 'none' },
    svg('polygon', { points: `0,${HEIGHT} ${points.join(' ')} ${last},${HEIGHT}` }),
    svg('polyline', { points: points.join(' ') }),
  );
}

export function showNow(traffic) {
  const rates = traffic.outcomes();
  const isKnown = traffic.rates !== null;
  const all = sum(Object.values(rates));
  const denied = rates.denied ?? 0;
  const { bars } = traffic.range(TREND_MS);
  const trend = (of) => bars.map((bar) => of(bar) / bar.seconds);
  const requests = trend(allOf);
  card('Requests', [isKnown ? `${rate(all)}/s` : '–'], 'trend of 15 minutes', { trend: requests });
  const otherwise = REFUSED_OTHERWISE.filter((outcome) => (rates[outcome] ?? 0) > 0);
  card(
    'Denied',
    [isKnown ? `${rate(denied)}/s` : '–'],
    [
      all === 0 ? (isKnown ? 'no requests' : 'not known yet') : `${rate((100 * denied) / all)} % of requests`,
      ...otherwise.map((outcome) => `${outcome} ${rate(rates[outcome])}/s`),
    ].join(', '),
    // Both trends have one axis, so that they can be compared.
    {
      isBad: denied > 0,
      trend: trend(({ refused }) => refused),
      highest: Math.max(...requests),
      kind: 'denied',
    },
  );
  const p99 = traffic.quantile(0.99);
  const quantiles = bars.map(({ spans }) => traffic.quantile(0.99, spans) ?? 0);
  card(
    'Latency',
    [`p50 ${latencyText(traffic.quantile(0.5))}`, `p99 ${latencyText(p99)}`],
    'added, last minute',
    {
      isBad: p99 > P99_MS_MAX,
      trend: quantiles.map((ms) => (ms === Number.POSITIVE_INFINITY ? 10_000 : ms)),
      kind: 'shadow',
    },
  );
}

/** Regulars and newcomers, if the file tells them apart. */
export function showVisitors(traffic, { newcomers }) {
  byId('visitors').hidden = newcomers === null;
  if (newcomers === null) return;
  const { waiting, acts, actsFrom } = newcomers;
  const [regular, newcomer] = ['regular', 'newcomer'].map((who) =>
    traffic.rate('floodgate_visitors_total', who),
  );
  const [denied, shadowDenied] = ['enforce', 'shadow'].map((mode) =>
    traffic.rate('floodgate_newcomers_denied_total', mode),
  );
  const overloaded = traffic.rate('floodgate_protect_refused_total', 'newcomer on');
  const parts = [
    `Regulars ${rate(regular)}/s admitted`,
    `Newcomers ${rate(newcomer)}/s admitted, ${rate(denied)}/s denied`,
    ...(shadowDenied > 0 ? [`${rate(shadowDenied)}/s would be denied`] : []),
    ...(waiting + overloaded > 0
      ? [`${count(waiting)} newcomers wait for the application, ${rate(overloaded)}/s refused`]
      : []),
    ...(acts
      ? []
      : actsFrom === null
        ? ['The limit for newcomers does not act before the store is reached']
        : [`Learning who is a regular: the limit for newcomers acts from ${clockTime(actsFrom)}`]),
  ];
  const row = byId('visitors');
  while (row.children.length > parts.length) row.lastChild?.remove();
  parts.forEach((text, i) => {
    if (row.children[i] === undefined) row.append(el('span'));
    setText(row.children[i], text);
  });
}

/** The line of status. Problems come first. A screen reader reads them when they change. */
export function showStatus(traffic, { store, applicationAway, processes, totals, addressesUntil }) {
  const problems = [];
  const facts = [];
  const storeFailures = listed(totals.storeFailures);
  const failed = storeFailures === '' ? '' : `, failed checks: ${storeFailures}`;
  if (store.kind === 'memory') facts.push('Store: memory of this process');
  else if (store.available)
    facts.push(`Store available, p99 ${latencyText(traffic.storeQuantile(0.99))}${failed}`);
  else
    problems.push(
      `Store unavailable since ${store.awaySince === null ? 'just now' : clockTime(store.awaySince)} for ${store.processesWithout} of ${processes} processes: each policy decides by its onStoreFailure${failed}`,
    );
  facts.push(processesText(processes, store.replicas));
  const total = listed(totals.upstreamFailures);
  const failures = total === '' ? '' : `, failures since the start: ${total}`;
  const { replied, unanswered } = traffic.replies();
  if (applicationAway !== null)
    problems.push(
      `The application does not answer since ${clockTime(applicationAway.since)}: ${applicationAway.reason}${failures}`,
    );
  else if (replied === 0 && unanswered > 0) problems.push(`The application does not answer${failures}`);
  else if (traffic.rate('floodgate_replies_total', 'none') > 0)
    problems.push(`The application does not answer all requests${failures}`);
  else
    facts.push(
      `${replied > 0 ? 'Application answers' : 'No reply of the application in the last minute'}${failures}`,
    );
  if (addressesUntil !== null) facts.push(`Addresses are shown until ${clockTime(addressesUntil)}`);
  if (totals.protection !== null) facts.push(protectionText(totals.protection));
  const refusal = byId('file-refusal');
  if (!refusal.hidden) problems.push('The edited policy file is not in use');
  const status = byId('status');
  status.classList.toggle('bad', problems.length > 0);
  setText(byId('status-problems'), problems.join(' · '));
  setText(byId('status-facts'), facts.join(' · '));
}

/** @param {number} own processes of this gateway @param {number} all those that share its store */
function processesText(own, all) {
  const processes = `${count(own)} ${own === 1 ? 'process' : 'processes'}`;
  if (all <= own) return processes;
  // Usually all gateways have the same number of processes.
  if (all % own > 0) return `${count(all)} processes of several gateways, ${count(own)} of this one`;
  return `${count(all / own)} gateways${own === 1 ? '' : ` of ${processes}`}`;
}

/** @param {{ mode: string, limit: number, waiting: number, refused: number }} protection */
function protectionText({ mode, limit, waiting, refused }) {
  const admits = `at most ${count(limit)} requests at the application`;
  return mode === 'shadow'
    ? `Protection in shadow: ${admits}, ${count(refused)} came beyond it`
    : `Protection: ${admits}, ${count(waiting)} wait, ${count(refused)} refused`;
}

function listed(counts) {
  return Object.entries(counts)
    .filter(([, value]) => value > 0)
    .map(([name, value]) => `${name} ${count(value)}`)
    .join(', ');
}

/** @param {number | null} ms an upper bound */
export function latencyText(ms) {
  if (ms === null) return '–';
  if (ms === Number.POSITIVE_INFINITY) return '> 10 s';
  return ms >= 1000 ? `≤ ${ms / 1000} s` : `≤ ${ms} ms`;
}
