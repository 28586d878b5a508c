/** One client in the page: its name, what it has used, and the buttons that change it. */
import { call } from './api.js';
import { banClient, bans, noteBan, resetClient, unbanClient } from './changes.js';
import { button, h } from './dom.js';
import { table } from './table.js';
import { clockTime, count, cut, untilText } from './text.js';

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

/** @returns {string | undefined} what was typed for a client, otherwise its address */
function nameOf(digest) {
  return names.get(digest) ?? addresses.get(digest);
}

/** @returns {string} the name of a client, otherwise its digest */
export function labelOf(digest) {
  return nameOf(digest) ?? digest;
}

export function isAddress(text) {
  return /^[\d.]+$|:/.test(text) && !/[\s/]/.test(text);
}

/** A link to the client, with its name or the beginning of its digest. */
export function clientLink(digest) {
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
  head: 'Action',
  kind: 'actions',
  cell: ({ identity }) => banButton(identity),
};

/** The button that bans a client, or lifts its ban. */
function banButton(digest) {
  const label = labelOf(digest);
  const client = { digest, label };
  const ban = bans.get(digest);
  return ban === undefined
    ? button('Ban', 'small danger', () => banClient(client), { 'aria-label': `Ban ${label}` })
    : button('Unban', 'small', () => unbanClient(client, ban), { 'aria-label': `Unban ${label}` });
}

/** @param {string} text as typed @returns {Promise<any>} what is known of the client */
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
  noteBan(identity, ban);
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
    kind: 'number',
    state: ({ used, limit }) => used >= limit && 'bad',
    cell: ({ used }) => count(used),
  },
  { head: 'Limit', kind: 'number', cell: ({ limit }) => count(limit) },
  {
    head: 'Reset at',
    kind: 'named',
    cell: ({ resetAt }) => h('time', { datetime: resetAt, title: resetAt }, clockTime(resetAt)),
  },
];

/** What is known of a client, with the buttons that change it. */
export function clientPanel({ identity, buckets, ban, regular }) {
  const reset = () => resetClient({ digest: identity, label: labelOf(identity) });
  const rows = buckets.map((bucket, i) => ({ ...bucket, key: String(i) }));
  return h(
    'div.result',
    h('p', clientLink(identity), ' ', banButton(identity)),
    ban &&
      h(
        'p.bad',
        `Banned by ${ban.policy === null ? 'an operator' : `policy ${ban.policy}`} ${untilText(ban)}.`,
      ),
    regular && h('p', regularText(regular)),
    rows.length === 0
      ? h('p', 'It has used nothing of its limits.')
      : [table('buckets', BUCKETS, rows), h('p', button('Reset counters…', '', reset))],
  );
}

function regularText({ until, days }) {
  const here = days.length === 0 ? '' : ` Good replies on: ${days.join(', ')}.`;
  return `${until === null ? 'A newcomer.' : `A regular until ${clockTime(until)}.`}${here}`;
}
