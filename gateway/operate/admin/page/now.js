/** The state of the gateway at the moment: requests, denials and latency, and a line for everything else. */
import { byId, h, patch } from './dom.js';
import { clockTime, count, latencyText, listed, rate } from './text.js';
import { sum } from './traffic.js';

const REFUSED_OTHERWISE = ['banned', 'unavailable', 'malformed', 'undecided'];
/** The gateway adds this much at most when it is well. */
const P99_MS_MAX = 100;

/** @param {string[]} values the first one is large @param {string} more explains them */
function card(name, values, isBad, more) {
  const last = values.length - 1;
  return h(
    'div.panel',
    h('dt', name),
    h(
      'dd.value',
      values.map((value, i) => h(isBad && i === last ? 'span.bad' : 'span', value)),
    ),
    h('dd.soft', more),
  );
}

export function showNow(traffic) {
  const isKnown = traffic.rates !== null;
  const perSecond = (value) => (isKnown ? `${rate(value)}/s` : '–');
  const rates = traffic.outcomes();
  const all = sum(Object.values(rates));
  const { denied = 0 } = rates;
  const none = isKnown ? 'no requests' : 'not known yet';
  const otherwise = REFUSED_OTHERWISE.filter((outcome) => (rates[outcome] ?? 0) > 0);
  const shares = [
    all === 0 ? none : `${rate((100 * denied) / all)} % of requests`,
    ...otherwise.map((outcome) => `${outcome} ${rate(rates[outcome])}/s`),
  ];
  const p99 = traffic.quantile(0.99);
  const quantiles = [`p50 ${latencyText(traffic.quantile(0.5))}`, `p99 ${latencyText(p99)}`];
  patch(
    byId('cards'),
    card('Requests', [perSecond(all)], false, 'this gateway'),
    card('Denied', [perSecond(denied)], denied > 0, shares.join(', ')),
    card('Latency', quantiles, p99 > P99_MS_MAX, 'added, last minute'),
  );
}

/** The line of status. Problems come first. A screen reader reads them when they change. */
export function showStatus(traffic, second, isFileRefused) {
  const { processes, store, totals, addressesUntil } = second;
  const until = addressesUntil === null ? '' : `Addresses are shown until ${clockTime(addressesUntil)}`;
  const states = [
    storeState(traffic, second),
    { fact: processesText(processes, store.replicas) },
    applicationState(traffic, second),
    { fact: until },
    { fact: totals.protection === null ? '' : protectionText(totals.protection) },
    { fact: totals.newcomers === null ? '' : newcomersText(traffic, totals.newcomers) },
    { problem: isFileRefused ? 'The edited policy file is not in use' : '' },
  ];
  const [problems, facts] = ['problem', 'fact'].map((kind) =>
    states.flatMap((state) => state[kind] || []).join(' · '),
  );
  byId('status').classList.toggle('bad', problems !== '');
  patch(byId('status-problems'), problems);
  patch(byId('status-facts'), facts);
}

function storeState(traffic, { store, processes, totals }) {
  if (store.kind === 'memory') return { fact: 'Store: memory of this process' };
  const failures = nonZero(totals.storeFailures);
  const failed = failures === '' ? '' : `, failed checks: ${failures}`;
  if (store.available)
    return { fact: `Store available, p99 ${latencyText(traffic.storeQuantile(0.99))}${failed}` };
  const since = store.awaySince === null ? 'just now' : clockTime(store.awaySince);
  return {
    problem: `Store unavailable since ${since} for ${store.processesWithout} of ${processes} processes: each policy decides by its onStoreFailure${failed}`,
  };
}

function applicationState(traffic, { applicationAway, totals }) {
  const total = nonZero(totals.upstreamFailures);
  const failures = total === '' ? '' : `, failures since the start: ${total}`;
  const { none: unanswered = 0, bound, ...answered } = traffic.replies();
  const replied = sum(Object.values(answered));
  if (applicationAway !== null) {
    const { since, reason } = applicationAway;
    return { problem: `The application does not answer since ${clockTime(since)}: ${reason}${failures}` };
  }
  if (replied === 0 && unanswered > 0) return { problem: `The application does not answer${failures}` };
  if (traffic.rate('floodgate_replies_total', 'none') > 0)
    return { problem: `The application does not answer all requests${failures}` };
  const answers = replied > 0 ? 'Application answers' : 'No reply of the application in the last minute';
  return { fact: `${answers}${failures}` };
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

/** Regulars and newcomers, if the file tells them apart. */
function newcomersText(traffic, { waiting, acts, actsFrom }) {
  const admitted = (who) => rate(traffic.rate('floodgate_visitors_total', who));
  const denied = (mode) => traffic.rate('floodgate_newcomers_denied_total', mode);
  const overloaded = traffic.rate('floodgate_protect_refused_total', 'newcomer on');
  const learning =
    actsFrom === null
      ? 'The limit for newcomers does not act before the store is reached'
      : `Learning who is a regular: the limit for newcomers acts from ${clockTime(actsFrom)}`;
  const parts = [
    `Regulars ${admitted('regular')}/s admitted`,
    `Newcomers ${admitted('newcomer')}/s admitted, ${rate(denied('enforce'))}/s denied`,
    denied('shadow') > 0 ? `${rate(denied('shadow'))}/s would be denied` : '',
    waiting + overloaded > 0
      ? `${count(waiting)} newcomers wait for the application, ${rate(overloaded)}/s refused`
      : '',
    acts ? '' : learning,
  ];
  return parts.filter((text) => text !== '').join(' · ');
}

/** @param {Record<string, number>} counts */
function nonZero(counts) {
  return listed(Object.entries(counts).filter(([, value]) => value > 0));
}
