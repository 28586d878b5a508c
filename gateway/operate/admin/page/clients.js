/** The view of clients, with the tables of those that are denied most and of bans. */
import { call } from './api.js';
import { askForAddresses, bans, kindOf, showAddresses, tell } from './changes.js';
import {
  actionsFor,
  clientCell,
  clientPanel,
  forgetAddresses,
  labelOf,
  lookUp,
  takeAddresses,
} from './client.js';
import { byId, clockTime, count, el, Rows, setText } from './dom.js';
import { showRefusalsOf } from './refusals.js';
import { isShown } from './views.js';

/** Rows in the overview. */
const FIRST = 10;

/** Bans in the table. */
const BANS_MAX = 25;

/** @type {Rows} */
let firstRows;
/** @type {Rows} */
let allRows;
/** @type {Rows} */
let banRows;
/** @type {Rows} */
let pathRows;
/** Digests in the table of bans. @type {string[]} */
let listed = [];
/** Counts the calls for bans; only the last answer is shown. */
let turns = 0;
let mayMove = false;

/** @returns the text of a count that is a lower bound if it is not exact */
function atLeast(number, isExact) {
  return isExact ? count(number) : `≥ ${count(number)}`;
}

function limitedRow() {
  const client = clientCell();
  const denied = el('span', { class: 'bad' });
  const admitted = el('div', { class: 'soft' });
  const policy = el('div');
  const last = el('time', { class: 'soft' });
  const actions = el('td', { class: 'actions' });
  const node = el(
    'tr',
    {},
    client.node,
    el('td', { class: 'number count' }, denied, admitted),
    el('td', { class: 'when' }, policy, last),
    actions,
  );
  const fill = ({ identity, denied: times, isExact, admitted: passed, isWhole, policy: name, lastAt }) => {
    client.fill(identity);
    setText(denied, atLeast(times, isExact));
    const none = isWhole ? 'none passed since' : 'none known to have passed';
    setText(admitted, passed === 0 ? none : `${atLeast(passed, isWhole)} passed since`);
    setText(last, clockTime(lastAt));
    setText(policy, name);
    policy.title = name;
    actionsFor(actions, identity);
  };
  return { node, fill };
}

/** States whether addresses are shown, with the button that changes it. */
export function showAddressState({ limited, areAddressesShown, addressesUntil }) {
  if (!areAddressesShown) forgetAddresses();
  const isAlways = areAddressesShown && addressesUntil === null;
  byId('limited-hint').hidden = isAlways || (limited.length === 0 && !areAddressesShown);
  const state = areAddressesShown
    ? `Addresses of refused clients are shown until ${clockTime(addressesUntil)}.`
    : 'Clients are shown as digests of their address or key.';
  setText(byId('addresses-state'), state);
  setText(byId('addresses-show'), areAddressesShown ? 'Hide addresses' : 'Show addresses for 10 min…');
}

function pathRow() {
  const path = el('th', { scope: 'row', class: 'code' });
  const requests = el('td', { class: 'number', 'data-head': 'Requests' });
  const refused = el('td', { class: 'number', 'data-head': 'Refused' });
  const fill = (one) => {
    setText(requests, atLeast(one.requests, one.isExact));
    setText(refused, count(one.refused));
    setText(path, one.path);
  };
  return { node: el('tr', {}, path, requests, refused), fill };
}

export function showPaths({ paths, limitedSince }, since) {
  pathRows.show(paths.map((one) => ({ ...one, key: one.path })));
  setText(byId('paths-since'), `since ${clockTime(Math.max(since, Date.parse(limitedSince)))}`);
}

/** `since` is the start of the history in this gateway. */
export function showLimited({ limited, limitedSince, isLimitedOfAll, store, processes }, since) {
  // Each process counts what passes from its own first denial of the client.
  const isAlone = store.replicas === 1;
  const items = limited.map((one) => ({ ...one, key: one.identity, isWhole: one.isExact && isAlone }));
  const hasStore = store.kind !== 'memory';
  // What happened before the start is lost, unless another gateway tells of it.
  const hasOthers = store.replicas > processes;
  const from = hasOthers ? limitedSince : Math.max(since, Date.parse(limitedSince));
  const text = `${limited.length === 0 ? 'nobody ' : ''}since ${clockTime(from).slice(0, -3)}`;
  for (const node of document.querySelectorAll('.shared'))
    setText(node, hasStore ? 'all gateways' : 'this gateway');
  const scope = isLimitedOfAll ? byId('limited-scope').textContent : 'this gateway: the store is unavailable';
  if (isShown('overview')) firstRows.show(items.slice(0, FIRST));
  else if (isShown('clients')) allRows.show(items);
  for (const id of ['limited-since', 'limited-all-since']) setText(byId(id), text);
  for (const id of ['limited-scope', 'limited-all-scope']) setText(byId(id), scope);
}

function banRow() {
  const client = clientCell();
  const by = el('td', { class: 'count' });
  const ends = el('time');
  const why = el('div', { class: 'soft' });
  const actions = el('td', { class: 'actions' });
  const node = el('tr', {}, client.node, by, el('td', { class: 'when' }, ends, why), actions);
  const fill = ({ identity, policy, until, reason }) => {
    client.fill(identity);
    setText(by, policy === null ? 'operator' : `policy ${policy}`);
    setText(ends, clockTime(until));
    setText(why, reason);
    why.title = reason;
    actionsFor(actions, identity);
  };
  return { node, fill };
}

/**
 * Reads the newest bans from the gateway, if the view shows them or offers to lift them.
 *
 * @param isChanged an operator has changed something, so rows move even if somebody uses the table
 */
export async function loadBans(isChanged = false) {
  if (!isShown('clients') && !isShown('overview')) return;
  mayMove ||= isChanged;
  // An answer that is on its way may be older than the change.
  const turn = ++turns;
  try {
    const found = await call('GET', `/api/bans?count=${BANS_MAX}`);
    if (turn !== turns) return;
    showBans(found);
    mayMove = false;
  } catch (error) {
    setText(byId('bans-total'), error.message);
  }
}

function showBans({ total, bans: found, addresses }) {
  takeAddresses(addresses);
  for (const digest of listed) bans.delete(digest);
  for (const { identity, until, reason, policy } of found) bans.set(identity, { until, reason, policy });
  listed = found.map(({ identity }) => identity);
  const hadFocus = byId('bans-rows').contains(document.activeElement);
  banRows.show(
    found.map((ban) => ({ ...ban, key: ban.identity })),
    mayMove,
  );
  if (hadFocus && document.activeElement === document.body) byId('bans-title').focus();
  byId('bans-rows').closest('table').hidden = total === 0;
  const shown = total > found.length ? `the newest ${count(found.length)} of ${count(total)}` : count(total);
  setText(byId('bans-total'), total === 0 ? 'nobody is banned' : shown);
}

/** Digest of the client that is shown; '': none. */
let openDigest = '';
/** Counts the look-ups of clients; only the last answer is shown. */
let lookUps = 0;

/** @param {string} digest of the address; '': the form alone */
export async function openClient(digest) {
  if (digest === '') {
    lookUps++;
    openDigest = '';
    byId('client-form').subject.value = '';
    byId('client-result').replaceChildren();
    showOpen();
    return;
  }
  if (digest === openDigest) return;
  byId('client-form').subject.value = labelOf(digest);
  await showClient(digest, kindOf(digest));
}

async function showClient(text, kind, identifier = '') {
  const result = byId('client-result');
  const turn = ++lookUps;
  try {
    const found = await lookUp(text, kind, identifier);
    if (turn !== lookUps) return;
    openDigest = found.identity;
    result.replaceChildren(clientPanel(found));
    if (isShown('clients')) history.replaceState(null, '', `#/clients/${openDigest}`);
  } catch (error) {
    if (turn !== lookUps) return;
    openDigest = '';
    result.replaceChildren(el('p', { class: 'error' }, error.message));
  }
  showOpen();
}

/** The view shows the refusals of the client that is open, otherwise who is denied most. */
function showOpen() {
  for (const id of ['limited-all', 'bans']) byId(id).hidden = openDigest !== '';
  showRefusalsOf(openDigest);
}

/** Shows what a change did to the client. */
export async function refreshClient() {
  if (openDigest !== '') await showClient(openDigest, 'digest');
}

export function wireClients() {
  byId('addresses-show').addEventListener('click', ({ target }) =>
    target.textContent === 'Hide addresses' ? showAddresses(0) : askForAddresses(),
  );
  firstRows = new Rows(byId('limited-rows'), limitedRow);
  allRows = new Rows(byId('limited-all-rows'), limitedRow);
  pathRows = new Rows(byId('paths-rows'), pathRow);
  banRows = new Rows(byId('bans-rows'), banRow);
  byId('client-form').addEventListener('submit', (event) => {
    event.preventDefault();
    const { subject, kind, identifier } = event.target;
    showClient(subject.value, kind.value, identifier.value).catch((error) =>
      tell(error.message, { isBad: true }),
    );
  });
}
