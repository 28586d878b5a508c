/** The state of the gateway at the moment: requests, refusals and latency, and a line for everything else. */
import { byId, h, patch } from './dom.js';
import { clockTime, count, latencyText, listed, rate } from './text.js';
import { sum } from './traffic.js';

/** The gateway adds this much at most when it is well. */
const P99_MS_MAX = 100;

/** @param {...any} value the large figure @param {string} more explains it */
function card(name, more, ...value) {
  return h('div.panel', h('dt', name), h('dd.value', value), h('dd.soft', more));
}

export function showNow(traffic) {
  const { all, refused, reasons } = traffic.flow();
  const perSecond = (value) => (traffic.rates === null ? '–' : `${rate(value)}/s`);
  const share = all === 0 ? [] : [`${rate((100 * refused) / all)} % of requests`];
  const why = reasons.map(([reason, value]) => `${reason} ${rate(value)}/s`);
  const p99 = traffic.quantile(0.99);
  patch(
    byId('cards'),
    card('Requests', 'this gateway', h('span', perSecond(all))),
    card('Refused', [...share, ...why].join(', '), h(refused > 0 ? 'span.bad' : 'span', perSecond(refused))),
    card(
      'Latency',
      'last minute',
      h('span', `p50 ${latencyText(traffic.quantile(0.5))}`),
      h(p99 > P99_MS_MAX ? 'span.bad' : 'span', `p99 ${latencyText(p99)}`),
    ),
  );
}

/** The line of status. Problems come first. A screen reader reads them when they change. */
export function showStatus(traffic, second, isFileRefused) {
  const { protection, newcomers } = second;
  const states = [
    storeState(traffic, second),
    { fact: processesText(second) },
    applicationState(traffic, second),
    { fact: protection && protectionText(protection) },
    { fact: newcomers && newcomersText(traffic, newcomers) },
    { problem: isFileRefused && 'The edited policy file is not in use' },
  ];
  const [problems, facts] = ['problem', 'fact'].map((kind) =>
    states.flatMap((state) => state[kind] || []).join(' · '),
  );
  byId('status').classList.toggle('bad', problems !== '');
  patch(byId('status-problems'), problems);
  patch(byId('status-facts'), facts);
}

function storeState(traffic, { store, processes, storeFailures }) {
  if (store.kind === 'memory') return { fact: 'Store: memory of this process' };
  const failed = failuresText(', failed checks: ', storeFailures);
  if (store.available)
    return { fact: `Store available, p99 ${latencyText(traffic.storeQuantile(0.99))}${failed}` };
  const since = store.awaySince === null ? 'just now' : clockTime(store.awaySince);
  return {
    problem: `Store unavailable since ${since} for ${store.processesWithout} of ${processes} processes: each policy decides by its onStoreFailure${failed}`,
  };
}

function applicationState(traffic, { applicationAway, upstreamFailures }) {
  const failures = failuresText(', failures since the start: ', upstreamFailures);
  if (applicationAway !== null) {
    const { since, reason } = applicationAway;
    return { problem: `The application does not answer since ${clockTime(since)}: ${reason}${failures}` };
  }
  if (traffic.rate('floodgate_replies_total', 'none') > 0)
    return { problem: `The application does not answer all requests${failures}` };
  const { none, bound, ...answered } = traffic.replies();
  const isAnswering = sum(Object.values(answered)) > 0;
  return {
    fact: `${isAnswering ? 'Application answers' : 'No reply of the application in the last minute'}${failures}`,
  };
}

function processesText({ processes, store }) {
  const own = `${count(processes)} ${processes === 1 ? 'process' : 'processes'}`;
  return store.replicas > processes ? `${own} of ${count(store.replicas)} that share the store` : own;
}

/** @param {{ mode: string, limit: number, waiting: number, refused: number }} protection */
function protectionText({ mode, limit, waiting, refused }) {
  const [name, what] =
    mode === 'shadow' ? ['Protection in shadow', 'would be refused'] : ['Protection', 'refused'];
  return `${name}: at most ${count(limit)} requests at the application, ${count(waiting)} wait, ${count(refused)} ${what}`;
}

/** Regulars and newcomers, if the file tells them apart. */
function newcomersText(traffic, { acts, actsFrom }) {
  const perSecond = (metric, label) => `${rate(traffic.rate(metric, label))}/s`;
  const parts = [
    `Regulars ${perSecond('floodgate_visitors_total', 'regular')}`,
    `newcomers ${perSecond('floodgate_visitors_total', 'newcomer')} admitted`,
    `${perSecond('floodgate_newcomers_denied_total', 'enforce')} denied`,
    `${perSecond('floodgate_newcomers_denied_total', 'shadow')} would be denied`,
  ];
  if (!acts)
    parts.push(
      `their limit acts ${actsFrom === null ? 'when the store is reached' : `from ${clockTime(actsFrom)}`}`,
    );
  return parts.join(', ');
}

/** @param {string} before the numbers, if there are any @param {Record<string, number>} counts */
function failuresText(before, counts) {
  const text = listed(Object.entries(counts).filter(([, value]) => value > 0));
  return text === '' ? '' : before + text;
}
