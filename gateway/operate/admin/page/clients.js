/** The view of clients, with the tables of those that are denied most and of bans. */
import { call } from './api.js';
import { bans, kindOf, tellError } from './changes.js';
import { ACTIONS, CLIENT, clientPanel, labelOf, lookUp, takeAddresses } from './client.js';
import { byId, errorText, h, head, on, patch, redraw } from './dom.js';
import { showRefusalsOf } from './refusals.js';
import { letRowsMove, table } from './table.js';
import { atLeast, clockTime, count } from './text.js';
import { isShown } from './views.js';

const BANS_MAX = 25;

const LIMITED = [
  CLIENT,
  {
    head: 'Denied',
    kind: 'number',
    cell: ({ denied, isExact, admitted, isWhole }) => [
      h('span.bad', atLeast(denied, isExact)),
      h('div.soft', `${atLeast(admitted, isWhole)} passed since`),
    ],
  },
  {
    head: 'Policy, last',
    cell: ({ policy, lastAt }) => [h('div', { title: policy }, policy), h('time.soft', clockTime(lastAt))],
  },
  ACTIONS,
];
const BANS = [
  CLIENT,
  { head: 'By', kind: 'named', cell: ({ policy }) => (policy === null ? 'operator' : `policy ${policy}`) },
  {
    head: 'Ends, reason',
    cell: ({ until, reason }) => [h('time', clockTime(until)), h('div.soft', { title: reason }, reason)],
  },
  ACTIONS,
];

/** Whose figures the tables have that all gateways share. */
export function sharedScope(second) {
  return second?.store.kind === 'memory' ? 'this gateway' : 'all gateways';
}

/** Clients that are denied most. */
export function showLimited(second) {
  const { limited, limitedSince, isLimitedOfAll, store } = second;
  // Each process counts what passes from its own first denial of the client.
  const isAlone = store.replicas === 1;
  const items = limited.map((one) => ({ ...one, key: one.identity, isWhole: one.isExact && isAlone }));
  const text = `${limited.length === 0 ? 'nobody ' : ''}since ${clockTime(limitedSince).slice(0, -3)}`;
  const scope = isLimitedOfAll ? sharedScope(second) : 'this gateway: the store is unavailable';
  patch(
    byId('limited'),
    head('limited', 'Denied most', scope, h('p.soft', { id: 'limited-since' }, text)),
    table('limited', LIMITED, items),
  );
}

/** @type {{ total: number, bans: any[] }} */
let banned = { total: 0, bans: [] };
/** Why the bans could not be read; '': they were. */
let bansError = '';
/** Counts the calls for bans; only the last answer is shown. */
let turns = 0;

/** The view of clients: the one that is open, otherwise who is banned. */
export function showClients(second) {
  byId('bans').hidden = openDigest !== '';
  if (openDigest !== '') return;
  const { total, bans: newest } = banned;
  const shown =
    total > newest.length ? `the newest ${count(newest.length)} of ${count(total)}` : count(total);
  const text = bansError || (total === 0 ? 'nobody is banned' : shown);
  const rows = newest.map((ban) => ({ ...ban, key: ban.identity }));
  const hadFocus = byId('bans').contains(document.activeElement);
  patch(
    byId('bans'),
    head('bans', 'Bans', sharedScope(second), h('p.soft', { id: 'bans-total' }, text)),
    total > 0 && table('bans', BANS, rows),
  );
  if (hadFocus && document.activeElement === document.body) byId('bans-title').focus();
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
  if (openDigest !== '') await showClient(openDigest, kindOf(openDigest));
}

on('client-form', 'submit', (event) => {
  event.preventDefault();
  const { subject, kind, identifier } = event.target;
  showClient(subject.value, kind.value, identifier.value).catch(tellError);
});
