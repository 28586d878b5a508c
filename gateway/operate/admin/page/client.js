/** One client in the page: its name, what it has used, and the buttons that change it. */
import { call } from './api.js';
import { banClient, bans, closeButton, openDialog, resetClient, tell, unbanClient } from './changes.js';
import { button, buttons, h } from './dom.js';
import { figures } from './table.js';
import { clockTime, count, untilText } from './text.js';

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

function cut(text, length) {
  return text.length > length ? `${text.slice(0, length)}…` : text;
}

export function isAddress(text) {
  return /^[\d.]+$|:/.test(text) && !/[\s/]/.test(text);
}

/** The digest, and the name where there is one. */
export function clientText(digest) {
  const name = nameOf(digest);
  if (name === undefined) return h('span.code.soft', { title: digest }, digest);
  return h('span', { title: digest }, h('strong', name), ' ', h('span.code.soft', cut(digest, LABEL_LENGTH)));
}

function clientLink(digest) {
  const name = nameOf(digest);
  const label = name === undefined ? cut(digest, LABEL_LENGTH) : cut(name, NAME_LENGTH);
  return h('a.code', { href: `#/clients/${digest}`, title: `${name ?? ''} ${digest}`.trim() }, label);
}

/** Columns of tables whose items have the `identity` of a client. */
export const CLIENT = {
  head: 'Client',
  kind: 'client',
  cell: ({ identity }) => clientLink(identity),
};
export const ACTIONS = {
  head: 'Actions',
  isHidden: true,
  kind: 'actions',
  cell: ({ identity }) => banButton(identity, 'small', ''),
};

/** The button that bans a client, or lifts its ban. @param {string} dots '…' where the button stands alone */
function banButton(digest, size, dots) {
  const label = labelOf(digest);
  const client = { digest, label };
  const ban = bans.get(digest);
  const text = `${ban === undefined ? 'Ban' : 'Unban'}${dots}`;
  const more = dots === '' ? { 'aria-label': `${text} ${label}` } : {};
  return ban === undefined
    ? button(text, `${size} danger`, () => banClient(client), more)
    : button(text, size, () => unbanClient(client, ban), more);
}

/** @param {string} text as typed @returns {Promise<any>} what is known of the client @throws {ApiError} */
export async function lookUp(text, kind = '', identifier = '') {
  const found = await call('POST', '/api/inspect', {
    subject: text,
    ...(kind === '' ? {} : { kind }),
    ...(identifier === '' ? {} : { identifier }),
  });
  const { identity, address, ban } = found;
  const typed = text.trim();
  if (typed !== identity)
    names.set(identity, isAddress(typed) || typed.includes('/') ? typed : `${typed.slice(0, 6)}…`);
  if (address !== null) takeAddresses({ [identity]: address });
  if (ban === null) bans.delete(identity);
  else bans.set(identity, ban);
  return found;
}

const BUCKETS = [
  {
    head: 'Policy',
    isHeader: true,
    cell: ({ policy, unproven }) => [policy, unproven && h('div.soft', 'on unproven keys')],
  },
  {
    head: 'Used',
    state: ({ used, limit }) => used >= limit && 'bad',
    cell: ({ used }) => count(used),
  },
  { head: 'Limit', cell: ({ limit }) => count(limit) },
  {
    head: 'Reset at',
    cell: ({ resetAt }) => h('time', { datetime: resetAt, title: resetAt }, clockTime(resetAt)),
  },
];

/** What is known of a client, with the buttons that change it. */
export function clientPanel({ identity, buckets, ban, address, regular }) {
  const reset = () => resetClient({ digest: identity, label: labelOf(identity) });
  const rows = buckets.map((bucket, i) => ({ ...bucket, key: String(i) }));
  return h(
    'div.result',
    h('p', clientText(identity)),
    ban &&
      h(
        'p.bad',
        `Banned by ${ban.policy === null ? 'an operator' : `policy ${ban.policy}`} ${untilText(ban)}.`,
      ),
    regular && h('p', regularText(regular)),
    buttons(
      banButton(identity, '', '…'),
      address && button('Copy address', '', () => copy(address)),
      address && button('Allow or deny in the file…', '', () => showListLines(address)),
    ),
    rows.length === 0
      ? h('p', 'It has used nothing of its limits.')
      : [
          figures('buckets', 'What the client has used', BUCKETS, rows),
          h('p', button('Reset counters…', '', reset)),
        ],
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
    return [h('h3', effect), h('pre', lines), buttons(button(`Copy ${name}`, '', () => copy(lines)))];
  };
  openDialog(
    'Lines for the policy file',
    h('p', 'If the file has the list already, add only the second line to it.'),
    list('deny', 'Refuse all requests of this address'),
    list('allow', 'Never limit this address'),
    buttons(closeButton()),
  );
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
