/** Refusals: the newest as they come, those that a search finds, and of each why it was. */
import { call } from './api.js';
import { closeDialog, openDialog, shadowPolicy } from './changes.js';
import { clientPanel, clientText, lookUp } from './clients.js';
import { byId, el, isInUse, setText, timeOf } from './dom.js';
import { showLine } from './policies.js';
import { tryRequest } from './try.js';

const SHOWN_MAX = 100;
const ID = /^[0-9abcdefghjkmnpqrstvwxyz]{20}$/;
const KINDS = {
  deny: '',
  unavailable: 'store away',
  listed: 'on the list deny',
  banned: 'banned',
  busy: 'a bound',
};

const NEWEST = 'Shown are the newest.';
const FOUND = 'Shown are those found.';

/** What is looked for; both empty: everything. */
let search = { text: '', identity: '' };
/** For older ones. */
let next = null;

function isFollowing() {
  return byId('denial-search').follow.checked && search.text === '' && search.identity === '';
}

/** @param {any[]} denials the newest first */
export function addDenials(denials) {
  const list = byId('denial-list');
  if (denials.length === 0 || !isFollowing()) return;
  // Whoever reads or is about to press a button is not moved away from it.
  if (isInUse(list)) return;
  // The first ones after a connection are in the list already.
  const shown = new Set([...list.children].map(({ dataset }) => dataset.id));
  const byTime = denials.filter(({ id }) => !shown.has(id)).sort((a, b) => b.at.localeCompare(a.at));
  list.prepend(...byTime.map(item));
  setText(byId('denial-status'), NEWEST);
  while (list.childElementCount > SHOWN_MAX) list.lastElementChild?.remove();
  // What fell out of the list is found behind the last one that is left.
  next = list.lastElementChild?.dataset.id ?? null;
  byId('denials-more').hidden = next === null;
}

function item(record) {
  const { id, at, decision, method, path, policy, identity } = record;
  const what = method === '' ? 'a connection' : `${method} ${path}`;
  const kind = KINDS[decision] ?? decision;
  const li = el(
    'li',
    {},
    timeOf(at),
    el('code', {}, what),
    el('span', {}, policy, kind === '' ? null : el('span', { class: 'soft' }, ` (${kind})`)),
    clientText(identity),
    el(
      'button',
      { type: 'button', class: 'small', 'aria-label': `Why was ${what} refused?`, onclick: () => why(id) },
      'Why?',
    ),
  );
  li.dataset.id = id;
  return li;
}

/** The connection is there again: what came meanwhile was not heard. */
export function catchUp() {
  if (isFollowing()) loadDenials();
}

/** @param {boolean} isMore behind those that are shown */
export async function loadDenials(isMore = false) {
  const { text, identity } = search;
  const query = new URLSearchParams();
  if (text !== '') query.set('text', text);
  if (identity !== '') query.set('identity', identity);
  if (isMore && next !== null) query.set('before', next);
  const list = byId('denial-list');
  try {
    const page = await call('GET', `/api/decisions?${query}`);
    next = page.next;
    if (!isMore) list.replaceChildren();
    list.append(...page.decisions.map(item));
    const isEmpty = list.childElementCount === 0;
    const told = text === '' && identity === '' ? [NEWEST, 'There are none.'] : [FOUND, 'Nothing is found.'];
    setText(byId('denial-status'), told[isEmpty ? 1 : 0]);
  } catch (error) {
    setText(byId('denial-status'), error.message);
  }
  byId('denials-more').hidden = next === null;
}

async function submit(form) {
  const text = form.text.value.trim();
  const client = form.client.value.trim();
  if (client === '' && ID.test(text)) {
    await why(text);
    return;
  }
  try {
    search = { text, identity: client === '' ? '' : (await lookUp(client)).identity };
  } catch (error) {
    setText(byId('denial-status'), error.message);
    return;
  }
  await loadDenials();
}

/** The explanation of `floodgate why`, and what can be done about it at once. */
export async function why(id) {
  let found;
  try {
    found = await call('GET', `/api/decisions/${encodeURIComponent(id)}/explanation`);
  } catch (error) {
    openDialog('Why was it refused?', [el('p', {}, error.message), buttons()]);
    return;
  }
  const { decision, what, reasons, facts, advice } = found;
  const rows = facts.flatMap(([name, value]) => [el('dt', {}, name), el('dd', {}, value)]);
  const client = el('div', { 'aria-live': 'polite' });
  const more = [];
  if (decision.method !== '')
    more.push(
      el(
        'button',
        {
          type: 'button',
          onclick: () => {
            closeDialog();
            tryRequest(decision.method, decision.path);
          },
        },
        'Try this request',
      ),
    );
  if (decision.line > 0)
    more.push(
      el(
        'button',
        {
          type: 'button',
          onclick: () => {
            closeDialog();
            showLine(decision.line);
          },
        },
        'Show the row',
      ),
    );
  if (decision.decision === 'deny')
    more.push(
      el(
        'button',
        { type: 'button', onclick: () => shadowPolicy(decision.policy) },
        'Put the policy in shadow…',
      ),
    );
  openDialog('Why was it refused?', [
    el('p', {}, what),
    ...reasons.map((text) => el('p', {}, el('strong', {}, text))),
    el('dl', { class: 'facts' }, ...rows, el('dt', {}, 'Decision'), el('dd', {}, el('code', {}, id))),
    el('p', {}, advice),
    el('h3', {}, 'The client now'),
    client,
    buttons(...more),
  ]);
  try {
    client.append(clientPanel(await lookUp(decision.identity, 'digest')));
  } catch (error) {
    client.append(el('p', { class: 'error' }, error.message));
  }
}

function buttons(...more) {
  return el(
    'div',
    { class: 'buttons' },
    ...more,
    el('button', { type: 'button', onclick: closeDialog }, 'Close'),
  );
}

export function wireDenials() {
  byId('denial-search').addEventListener('submit', (event) => {
    event.preventDefault();
    submit(event.target);
  });
  byId('denial-search').follow.addEventListener('change', () => {
    if (isFollowing()) loadDenials();
  });
  byId('denials-more').addEventListener('click', () => loadDenials(true));
}
