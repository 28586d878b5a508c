/** The view of clients, and the table of those that are denied most. */
import { tell } from './changes.js';
import { actionsFor, clientCell, clientPanel, labelOf, lookUp } from './client.js';
import { byId, clockTime, count, el, Rows, setText } from './dom.js';
import { showRefusalsOf } from './refusals.js';
import { isShown } from './views.js';

/** Rows in the overview. */
const FIRST = 10;

/** @type {Rows} */
let firstRows;
/** @type {Rows} */
let allRows;

function limitedRow() {
  const client = clientCell();
  const denied = el('td', { class: 'number count bad' });
  const last = el('time');
  const policy = el('div', { class: 'soft' });
  const actions = el('td', { class: 'actions' });
  const node = el('tr', {}, client.node, denied, el('td', { class: 'when' }, last, policy), actions);
  const fill = ({ identity, denied: times, policy: name, lastAt }) => {
    client.fill(identity);
    setText(denied, count(times));
    setText(last, clockTime(lastAt));
    setText(policy, name);
    policy.title = name;
    actionsFor(actions, identity);
  };
  return { node, fill };
}

export function showLimited({ limited, limitedSince }, since) {
  const items = limited.map((one) => ({ ...one, key: one.identity }));
  const text = `${limited.length === 0 ? 'nobody ' : ''}since ${clockTime(Math.max(since, Date.parse(limitedSince)))}`;
  if (isShown('overview')) firstRows.show(items.slice(0, FIRST));
  else if (isShown('clients')) allRows.show(items);
  for (const id of ['limited-since', 'limited-all-since']) setText(byId(id), text);
}

/** Digest of the client that is shown; '': none. */
let openDigest = '';

/** @param {string} digest of the address; '': the form alone */
export async function openClient(digest) {
  if (digest === '') {
    openDigest = '';
    byId('client-result').replaceChildren();
    showOpen();
    return;
  }
  if (digest === openDigest) return;
  byId('client-form').subject.value = labelOf(digest);
  await showClient(digest, 'digest');
}

async function showClient(text, kind, identifier = '') {
  const result = byId('client-result');
  try {
    const found = await lookUp(text, kind, identifier);
    openDigest = found.identity;
    result.replaceChildren(clientPanel(found));
    if (isShown('clients')) history.replaceState(null, '', `#/clients/${openDigest}`);
  } catch (error) {
    openDigest = '';
    result.replaceChildren(el('p', { class: 'error' }, error.message));
  }
  showOpen();
}

/** The view shows the refusals of the client that is open, otherwise who is denied most. */
function showOpen() {
  byId('limited-all').hidden = openDigest !== '';
  showRefusalsOf(openDigest);
}

/** Shows what a change did to the client. */
export async function refreshClient() {
  if (openDigest !== '') await showClient(openDigest, 'digest');
}

export function wireClients() {
  firstRows = new Rows(byId('limited-rows'), limitedRow);
  allRows = new Rows(byId('limited-all-rows'), limitedRow);
  byId('client-form').addEventListener('submit', (event) => {
    event.preventDefault();
    const { subject, kind, identifier } = event.target;
    showClient(subject.value, kind.value, identifier.value).catch((error) =>
      tell(error.message, { isBad: true }),
    );
  });
}
