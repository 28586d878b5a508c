/** The view of clients, with the tables of those that are denied most and of bans. */
import { call } from './api.js';
import { askForAddresses, bans, hideAddresses, kindOf, tellError } from './changes.js';
import { ACTIONS, CLIENT, clientPanel, forgetAddresses, labelOf, lookUp, takeAddresses } from './client.js';
import { button, byId, errorText, h, head, on, patch, redraw } from './dom.js';
import { showRefusalsOf } from './refusals.js';
import { figures, letRowsMove, stacked } from './table.js';
import { atLeast, clockTime, count } from './text.js';
import { isShown } from './views.js';

/** Rows in the overview. */
const FIRST = 10;
const BANS_MAX = 25;

const LIMITED = [
  CLIENT,
  {
    head: 'Denied, passed',
    kind: 'number count',
    cell: (one) => [h('span.bad', atLeast(one.denied, one.isExact)), h('div.soft', passedText(one))],
  },
  {
    head: 'Policy, last',
    kind: 'when',
    cell: ({ policy, lastAt }) => [h('div', { title: policy }, policy), h('time.soft', clockTime(lastAt))],
  },
  ACTIONS,
];
const PATHS = [
  { head: 'Path', isHeader: true, state: () => 'code', cell: ({ path }) => path },
  { head: 'Requests', kind: 'number', cell: ({ requests, isExact }) => atLeast(requests, isExact) },
  { head: 'Refused', kind: 'number', cell: ({ refused }) => count(refused) },
];
const BANS = [
  CLIENT,
  { head: 'By', kind: 'count', cell: ({ policy }) => (policy === null ? 'operator' : `policy ${policy}`) },
  {
    head: 'Ends, reason',
    kind: 'when',
    cell: ({ until, reason }) => [h('time', clockTime(until)), h('div.soft', { title: reason }, reason)],
  },
  ACTIONS,
];

function passedText({ admitted, isWhole }) {
  if (admitted > 0) return `${atLeast(admitted, isWhole)} passed since`;
  return isWhole ? 'none passed since' : 'none known to have passed';
}

/** Whose figures the tables have that all gateways share. */
export function sharedScope(second) {
  return second?.store.kind === 'memory' ? 'this gateway' : 'all gateways';
}

/** Start of what is known, in ms. `since` is the start of the history in this gateway. */
function knownSince({ limitedSince }, since) {
  return Math.max(since, Date.parse(limitedSince));
}

/** Clients that are denied most. `since` is the start of the history in this gateway. */
function limitedPanel(id, second, since, most) {
  const { limited, limitedSince, isLimitedOfAll, store, processes } = second;
  // Each process counts what passes from its own first denial of the client.
  const isAlone = store.replicas === 1;
  const items = limited.map((one) => ({ ...one, key: one.identity, isWhole: one.isExact && isAlone }));
  // What happened before the start is lost, unless another gateway tells of it.
  const hasOthers = store.replicas > processes;
  const from = hasOthers ? limitedSince : knownSince(second, since);
  const text = `${limited.length === 0 ? 'nobody ' : ''}since ${clockTime(from).slice(0, -3)}`;
  const scope = isLimitedOfAll ? sharedScope(second) : 'this gateway: the store is unavailable';
  return [
    head(id, 'Denied most', scope, h('p.soft', { id: `${id}-since` }, text)),
    stacked(id, LIMITED, items.slice(0, most)),
  ];
}

/** States whether addresses are shown, with the button that changes it. */
function addressState({ limited, areAddressesShown, addressesUntil }) {
  const isAlways = areAddressesShown && addressesUntil === null;
  if (isAlways || (limited.length === 0 && !areAddressesShown)) return null;
  return h(
    'p.soft.hint',
    { id: 'limited-hint' },
    areAddressesShown
      ? `Addresses of refused clients are shown until ${clockTime(addressesUntil)}. `
      : 'Clients are shown as digests of their address or key. ',
    areAddressesShown
      ? button('Hide addresses', 'small', hideAddresses)
      : button('Show addresses for 10 min…', 'small', askForAddresses),
  );
}

/** The clients and paths of the overview. */
export function showFirst(second, since) {
  patch(byId('limited'), limitedPanel('limited', second, since, FIRST), addressState(second));
  const rows = second.paths.map((one) => ({ ...one, key: one.path }));
  const path = { ...PATHS[0], head: `Path, since ${clockTime(knownSince(second, since))}` };
  patch(byId('paths'), figures('paths', 'What is requested', [path, ...PATHS.slice(1)], rows));
}

/** @type {{ total: number, bans: any[] }} */
let banned = { total: 0, bans: [] };
/** Why the bans could not be read; '': they were. */
let bansError = '';
/** Counts the calls for bans; only the last answer is shown. */
let turns = 0;

/** The view of clients: the one that is open, otherwise who is banned and who is denied most. */
export function showClients(second, since) {
  for (const id of ['limited-all', 'bans']) byId(id).hidden = openDigest !== '';
  if (openDigest !== '') return;
  const { total, bans: newest } = banned;
  const shown =
    total > newest.length ? `the newest ${count(newest.length)} of ${count(total)}` : count(total);
  const rows = newest.map((ban) => ({ ...ban, key: ban.identity }));
  const hadFocus = byId('bans').contains(document.activeElement);
  patch(
    byId('bans'),
    head(
      'bans',
      'Bans',
      sharedScope(second),
      h('p.soft', { id: 'bans-total' }, bansError || (total === 0 ? 'nobody is banned' : shown)),
    ),
    total > 0 && stacked('bans', BANS, rows),
  );
  if (hadFocus && document.activeElement === document.body) byId('bans-title').focus();
  patch(byId('limited-all'), limitedPanel('limited-all', second, since, second.limited.length));
}

/** Forgets addresses that the gateway does not show any more. */
export function keepAddresses({ areAddressesShown, addresses }) {
  if (!areAddressesShown) forgetAddresses();
  takeAddresses(addresses);
}

/**
 * Reads the newest bans from the gateway, if the view shows them or offers to lift them.
 *
 * @param isChanged an operator has changed something, so rows move even if somebody uses the table
 */
export async function loadBans(isChanged = false) {
  if (!isShown('clients') && !isShown('overview')) return;
  // An answer that is on its way may be older than the change.
  const turn = ++turns;
  try {
    const found = await call('GET', `/api/bans?count=${BANS_MAX}`);
    if (turn !== turns) return;
    takeAddresses(found.addresses);
    for (const { identity } of banned.bans) bans.delete(identity);
    for (const { identity, ...ban } of found.bans) bans.set(identity, ban);
    banned = found;
    bansError = '';
    if (isChanged) letRowsMove();
  } catch (error) {
    bansError = error.message;
  }
  redraw();
}

/** Digest of the client that is shown; '': none. */
let openDigest = '';
/** Counts the look-ups of clients; only the last answer is shown. */
let lookUps = 0;

/** @param {string} digest of the address; '': the form alone */
export async function openClient(digest) {
  if (digest !== '' && digest === openDigest) return;
  byId('client-form').subject.value = digest === '' ? '' : labelOf(digest);
  if (digest !== '') return showClient(digest, kindOf(digest));
  lookUps++;
  show('', null);
}

async function showClient(text, kind, identifier = '') {
  const turn = ++lookUps;
  try {
    const found = await lookUp(text, kind, identifier);
    if (turn !== lookUps) return;
    show(found.identity, clientPanel(found));
    if (isShown('clients')) history.replaceState(null, '', `#/clients/${openDigest}`);
  } catch (error) {
    if (turn === lookUps) show('', errorText(error));
  }
}

/** @param {string} digest '': none @param {any} result what was found */
function show(digest, result) {
  openDigest = digest;
  patch(byId('client-result'), result);
  showRefusalsOf(digest);
  redraw();
}

/** Shows what a change did to the client. */
export async function refreshClient() {
  if (openDigest !== '') await showClient(openDigest, 'digest');
}

export function wireClients() {
  on('client-form', 'submit', (event) => {
    event.preventDefault();
    const { subject, kind, identifier } = event.target;
    showClient(subject.value, kind.value, identifier.value).catch(tellError);
  });
}
