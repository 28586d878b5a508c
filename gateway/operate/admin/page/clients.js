/** Clients: who they are, what they have used, and what is done about them. */
import { call } from './api.js';
import { banClient, resetClient, tell, unbanClient } from './changes.js';
import { byId, count, el, isInUse, timeOf } from './dom.js';

/** Digest -> what the operator typed for it. Of keys the beginning only; gone with the page. */
const names = new Map();

export function labelOf(digest) {
  return names.get(digest) ?? digest;
}

/** @returns {HTMLElement} the digest, and who it is where that was typed */
export function clientText(digest) {
  const name = names.get(digest);
  return el(
    'span',
    { title: digest },
    ...(name === undefined ? [] : [el('strong', {}, name), ' ']),
    el('span', { class: 'digest soft' }, name === undefined ? digest : `${digest.slice(0, 8)}…`),
  );
}

/** @param {string} text as typed @returns {Promise<any>} what is known of the client @throws {ApiError} */
export async function lookUp(text, kind = '', identifier = '') {
  const found = await call('POST', '/api/inspect', {
    subject: text,
    ...(kind === '' ? {} : { kind }),
    ...(identifier === '' ? {} : { identifier }),
  });
  const typed = text.trim();
  const isAddress = /^[\d.]+$|:/.test(typed) && !/\s/.test(typed);
  if (typed !== found.identity) names.set(found.identity, isAddress ? typed : `${typed.slice(0, 6)}…`);
  return found;
}

/** @returns {HTMLElement} what is known of a client, with the buttons that change it */
export function clientPanel(found) {
  const { identity, buckets, ban } = found;
  const client = { digest: identity, label: labelOf(identity) };
  const body =
    buckets.length === 0
      ? el('p', {}, 'It has used nothing of its limits.')
      : el(
          'div',
          { class: 'scroll', tabindex: '0', role: 'region', 'aria-label': 'What it has used' },
          el(
            'table',
            {},
            el(
              'thead',
              {},
              el(
                'tr',
                {},
                ...['Policy', 'Used', 'Limit', 'All back'].map((text) => el('th', { scope: 'col' }, text)),
              ),
            ),
            el('tbody', {}, ...buckets.map(bucketRow)),
          ),
        );
  const banned =
    ban === null
      ? null
      : el('p', { class: 'bad' }, `Banned until ${ban.until}${ban.reason === '' ? '' : ` (${ban.reason})`}.`);
  return el(
    'div',
    { class: 'result' },
    el('p', {}, clientText(identity)),
    banned,
    body,
    el(
      'div',
      { class: 'buttons' },
      el('button', { type: 'button', onclick: () => resetClient(client) }, 'Clear counters…'),
      ban === null
        ? el('button', { type: 'button', class: 'danger', onclick: () => banClient(client) }, 'Ban…')
        : el('button', { type: 'button', onclick: () => unbanClient(client, ban) }, 'Unban…'),
    ),
  );
}

function bucketRow({ policy, used, limit, resetAt, unproven }) {
  return el(
    'tr',
    {},
    el('th', { scope: 'row' }, policy, unproven ? el('div', { class: 'soft' }, 'on unproven keys') : null),
    el('td', { class: used >= limit ? 'bad' : '' }, count(used)),
    el('td', {}, count(limit)),
    el('td', {}, timeOf(resetAt)),
  );
}

/** @type {{ identity: string, denied: number }[]} */
let limited = [];

export function showLimited(now = limited) {
  limited = now;
  const list = byId('limited-list');
  // Whoever is about to press a button keeps it.
  if (isInUse(list)) return;
  list.replaceChildren(
    ...(limited.length === 0
      ? [el('li', { class: 'soft' }, 'Nobody yet.')]
      : limited.map(({ identity, denied }) =>
          el(
            'li',
            {},
            clientText(identity),
            el('span', { class: 'bad' }, `${count(denied)} times`),
            el(
              'button',
              {
                type: 'button',
                class: 'small',
                onclick: () => openClient(identity),
                'aria-label': `Show ${labelOf(identity)}`,
              },
              'Show',
            ),
          ),
        )),
  );
}

/** Of the panel that is open; '' where none is. */
let openDigest = '';

async function openClient(digest) {
  byId('client-form').subject.value = digest;
  await showClient(digest, 'digest');
  byId('client-form').scrollIntoView({ block: 'start' });
}

async function showClient(text, kind, identifier = '') {
  const result = byId('client-result');
  try {
    const found = await lookUp(text, kind, identifier);
    openDigest = found.identity;
    result.replaceChildren(clientPanel(found));
    showLimited();
  } catch (error) {
    openDigest = '';
    result.replaceChildren(el('p', { class: 'error' }, error.message));
  }
}

/** After a change. */
export async function refreshClient() {
  if (openDigest !== '') await showClient(openDigest, 'digest');
}

export function wireClients() {
  byId('client-form').addEventListener('submit', (event) => {
    event.preventDefault();
    const { subject, kind, identifier } = event.target;
    showClient(subject.value, kind.value, identifier.value).catch((error) =>
      tell(error.message, { isBad: true }),
    );
  });
}
