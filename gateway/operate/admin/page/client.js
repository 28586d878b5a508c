/** One client in the page: its name, what it has used, and the buttons that change it. */
import { call } from './api.js';
import { banClient, bans, closeDialog, openDialog, resetClient, tell, unbanClient } from './changes.js';
import { button, clockTime, count, el, figures, setText, timeOf } from './dom.js';

const LABEL_LENGTH = 10;
/** An IPv6 network is longer. */
const NAME_LENGTH = 18;
const ADDRESSES_MAX = 2000;

/** Digest -> what the operator typed for it. Of keys only the beginning. Lost when the page is closed. */
const names = new Map();

/** Digest -> address, as far as the gateway shows addresses. */
const addresses = new Map();

/** @param {Record<string, string>} known by digest */
export function takeAddresses(known) {
  for (const [digest, address] of Object.entries(known)) addresses.set(digest, address);
  for (const digest of addresses.keys()) {
    if (addresses.size <= ADDRESSES_MAX) break;
    addresses.delete(digest);
  }
}

/** The gateway does not show them any more. */
export function forgetAddresses() {
  addresses.clear();
}

/** @returns {string | undefined} what was typed for a client, otherwise its address */
function nameOf(digest) {
  return names.get(digest) ?? addresses.get(digest);
}

/** @returns {string} the name of a client, otherwise its digest */
export function labelOf(digest) {
  return nameOf(digest) ?? digest;
}

function shortLabel(digest) {
  const name = nameOf(digest);
  if (name === undefined) return `${digest.slice(0, LABEL_LENGTH)}…`;
  return name.length > NAME_LENGTH ? `${name.slice(0, NAME_LENGTH)}…` : name;
}

export function isAddress(text) {
  return /^[\d.]+$|:/.test(text) && !/[\s/]/.test(text);
}

/** @returns {HTMLElement} the digest, and the name where there is one */
export function clientText(digest) {
  const name = nameOf(digest);
  return el(
    'span',
    { title: digest },
    ...(name === undefined ? [] : [el('strong', {}, name), ' ']),
    el('span', { class: 'digest soft' }, name === undefined ? digest : `${digest.slice(0, LABEL_LENGTH)}…`),
  );
}

/** The cell of a client in a table. */
export function clientCell() {
  const link = el('a', { class: 'code' });
  const fill = (digest) => {
    setText(link, shortLabel(digest));
    link.href = `#/clients/${digest}`;
    link.title = `${nameOf(digest) ?? ''} ${digest}`.trim();
  };
  return { node: el('td', { class: 'client' }, link), fill };
}

/** Fills the cell with the button that bans a client, or lifts its ban. @param {HTMLElement} cell */
export function actionsFor(cell, digest) {
  const ban = bans.get(digest);
  const label = labelOf(digest);
  const state = `${label} ${ban?.until ?? ''}`;
  if (cell.dataset.state === state) return;
  cell.dataset.state = state;
  const client = { digest, label };
  const isFocused = cell.contains(document.activeElement);
  const only =
    ban === undefined
      ? button('Ban', 'small danger', () => banClient(client), { 'aria-label': `Ban ${label}` })
      : button('Unban', 'small', () => unbanClient(client, ban), { 'aria-label': `Unban ${label}` });
  cell.replaceChildren(only);
  if (isFocused) only.focus();
}

/** @param {string} text as typed @returns {Promise<any>} what is known of the client @throws {ApiError} */
export async function lookUp(text, kind = '', identifier = '') {
  const found = await call('POST', '/api/inspect', {
    subject: text,
    ...(kind === '' ? {} : { kind }),
    ...(identifier === '' ? {} : { identifier }),
  });
  const typed = text.trim();
  if (typed !== found.identity)
    names.set(found.identity, isAddress(typed) || typed.includes('/') ? typed : `${typed.slice(0, 6)}…`);
  if (found.address !== null) takeAddresses({ [found.identity]: found.address });
  if (found.ban === null) bans.delete(found.identity);
  else bans.set(found.identity, found.ban);
  return found;
}

/** @returns {HTMLElement} what is known of a client, with the buttons that change it */
export function clientPanel({ identity, buckets, ban, address, regular }) {
  const client = { digest: identity, label: labelOf(identity) };
  const used =
    buckets.length === 0
      ? [el('p', {}, 'It has used nothing of its limits.')]
      : [
          figures(
            'What the client has used',
            ['Policy', 'Used', 'Limit', 'Reset at'],
            buckets.map(bucketRow),
          ),
          el(
            'p',
            {},
            button('Reset counters…', '', () => resetClient(client)),
          ),
        ];
  const banned =
    ban === null
      ? null
      : el(
          'p',
          { class: 'bad' },
          `Banned by ${ban.policy === null ? 'an operator' : `policy ${ban.policy}`} until ${clockTime(ban.until)}${ban.reason === '' ? '' : ` (${ban.reason})`}.`,
        );
  return el(
    'div',
    { class: 'result' },
    el('p', {}, clientText(identity)),
    banned,
    regular === null ? null : el('p', {}, regularText(regular)),
    el(
      'div',
      { class: 'buttons' },
      ban === null
        ? button('Ban…', 'danger', () => banClient(client))
        : button('Unban…', '', () => unbanClient(client, ban)),
      ...(address === null
        ? []
        : [
            button('Copy address', '', () => copy(address)),
            button('Allow or deny in the file…', '', () => showListLines(address)),
          ]),
    ),
    ...used,
  );
}

function regularText({ until, days }) {
  const here = days.length === 0 ? '' : ` Good replies on: ${days.join(', ')}.`;
  return `${until === null ? 'A newcomer.' : `A regular until ${clockTime(until)}.`}${here}`;
}

/** Shows the lines that put an address on a list of the policy file. */
function showListLines(address) {
  // A colon may end a key in YAML.
  const entry = `  - { address: ${address.includes(':') ? `"${address}"` : address} }`;
  const list = (name, effect) => {
    const lines = `${name}:\n${entry}`;
    return [
      el('h3', {}, effect),
      el('pre', {}, lines),
      el(
        'div',
        { class: 'buttons' },
        button(`Copy ${name}`, '', () => copy(lines)),
      ),
    ];
  };
  openDialog('Lines for the policy file', [
    el('p', {}, 'If the file has the list already, add only the second line to it.'),
    ...list('deny', 'Refuse all requests of this address'),
    ...list('allow', 'Never limit this address'),
    el('div', { class: 'buttons' }, button('Close', '', closeDialog)),
  ]);
}

async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    tell('Copied.');
  } catch {
    // Browsers refuse it on pages without TLS that are not on this machine.
    tell(text);
  }
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
