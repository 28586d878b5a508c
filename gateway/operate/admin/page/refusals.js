/** Refusals, grouped by client and policy: the newest ones as they come, and those that a search finds. */
import { call } from './api.js';
import { ACTIONS, CLIENT, isAddress, lookUp, takeAddresses } from './client.js';
import { button, byId, h, head, on, patch, redraw } from './dom.js';
import { letRowsMove, table } from './table.js';
import { clockTime, count, cut } from './text.js';
import { go } from './views.js';

const GROUPS_MAX = 200;
/** Characters of a request in the table. */
const REQUEST_LENGTH = 100;
/** Records that are kept, the newest ones. */
const RECORDS_MAX = 5000;
/** Pages that are loaded at once, until there are enough groups: in a flood, most refusals are of one. */
const PAGES_MAX = 10;
/** Groups that are shown at first, and added with each press of the button. */
const SHOWN = 10;
/** The stream has at most this many in a second. If it has as many, there are more in the store. */
const HEARD_MAX = 20;
const ID = /^[0-9abcdefghjkmnpqrstvwxyz]{26}$/;
const DIGEST = /^[\w-]{22}$/;

/** The records of a group, the newest one first. @typedef {{ key: string, records: any[] }} Group */

/** @param {Group} group */
function requestCell({ records }) {
  const { id, method, path, decision, policy } = records[0];
  const request = method === '' ? 'a connection' : `${method} ${path}`;
  const label = `Why was ${request} refused?`;
  const paths = new Set(records.map((record) => record.path)).size;
  return [
    h('a.code', { href: `#/why/${id}`, title: request, 'aria-label': label }, cut(request, REQUEST_LENGTH)),
    paths > 1 && h('div.soft', `${count(records.length)} stored refusals on ${count(paths)} paths`),
    h('div.soft', { title: policy }, decision === 'deny' ? policy : `${policy}, ${decision}`),
  ];
}

/** @param {Group} group */
function timeCell({ records }) {
  const [newest, oldest] = [records[0], records.at(-1)];
  return [
    h('time', { datetime: newest.at }, clockTime(newest.at)),
    newest !== oldest && h('div.soft', `first ${clockTime(oldest.at)}`),
  ];
}

/** A record stands for several refusals in a flood. @param {Group} group */
function timesOf({ records }) {
  return count(records.reduce((all, { refusals = 1 }) => all + refusals, 0));
}

/** A limit for everyone together names no client. */
function ofClientIn(column) {
  const cell = ({ records: [record] }) => record.identifier !== 'everyone' && column.cell(record);
  return { ...column, cell };
}

const COLUMNS = [
  { head: 'Last, first', cell: timeCell },
  { head: 'Times', kind: 'number', cell: timesOf },
  { head: 'Request, policy', kind: 'what', cell: requestCell },
  ofClientIn(CLIENT),
  ofClientIn(ACTIONS),
];

class Refusals {
  constructor() {
    this.ask('', '');
  }

  /** Changes what is shown; load() loads it. */
  ask(text, identity) {
    this.text = text;
    this.identity = identity;
    this.next = null;
    this.most = SHOWN;
    this.problem = '';
    /** By id, the newest first. @type {Map<string, any>} */
    this.records = new Map();
  }

  /** New refusals of the stream. */
  hear(records) {
    if (this.text !== '') return;
    const mine = records.filter(({ identity }) => this.identity === '' || identity === this.identity);
    this.#add(mine);
    if (mine.length > 0 && records.length >= HEARD_MAX) this.next = records.at(-1).id;
  }

  #add(records) {
    for (const record of records) this.records.set(record.id, record);
    const sorted = [...this.records].sort(([, a], [, b]) => b.at.localeCompare(a.at));
    this.records = new Map(sorted.slice(0, RECORDS_MAX));
  }

  /** @returns {Group[]} */
  #groups() {
    const keyOf = ({ identity, decision, policy }) => [identity, decision, policy].join('\n');
    const groups = Map.groupBy(this.records.values(), keyOf);
    return [...groups].map(([key, records]) => ({ key, records })).slice(0, GROUPS_MAX);
  }

  /** @param {boolean} isMore adds older ones to those that are loaded */
  async load(isMore = false) {
    const { text, identity, most } = this;
    const query = new URLSearchParams(Object.entries({ text, identity }).filter(([, value]) => value !== ''));
    try {
      for (let pages = 0; pages < PAGES_MAX; pages++) {
        const isFirst = pages === 0 && !isMore;
        if (!isFirst) query.set('before', this.next);
        const page = await call('GET', `/api/decisions?${query}`);
        // Another search has begun in the meantime.
        if (text !== this.text || identity !== this.identity) return;
        if (isFirst) this.ask(text, identity);
        this.most = most;
        this.next = page.next;
        takeAddresses(page.addresses);
        this.#add(page.decisions);
        if (page.next === null || this.#groups().length >= most) break;
      }
    } catch (error) {
      this.problem = error.message;
    }
    letRowsMove();
    redraw();
  }

  async #showMore() {
    this.most = Math.min(this.most + 2 * SHOWN, GROUPS_MAX);
    if (this.#groups().length < this.most && this.next !== null) return this.load(true);
    letRowsMove();
    redraw();
  }

  /** @param {string} id of the panel @param {string} title @param {...any} more buttons */
  show(id, title, scope, ...more) {
    const groups = this.#groups();
    const isAll = groups.length <= this.most && this.next === null;
    const hidden = isAll || this.most >= GROUPS_MAX;
    const older = button('Older refusals', '', () => this.#showMore(), { hidden });
    patch(
      byId(id),
      head(id, title, scope, h('p.soft', { id: `${id}-status`, role: 'status' }, this.#status())),
      table(id, COLUMNS, groups.slice(0, this.most)),
      h('div.buttons', older, more),
    );
  }

  #status() {
    if (this.problem !== '') return this.problem;
    const isEmpty = this.records.size === 0;
    if (this.text !== '') return isEmpty ? `No refusal matches “${this.text}”` : `that match “${this.text}”`;
    return isEmpty ? 'none stored' : 'newest first; of a flood only a sample is stored';
  }
}

const newest = new Refusals();
const ofClient = new Refusals();

/** @param {any[]} records */
export function hearRefusals(records) {
  newest.hear(records);
  if (ofClient.identity !== '') ofClient.hear(records);
}

export function showNewest(scope) {
  const all = newest.text !== '' && button('Show the newest', '', () => search(''));
  newest.show('newest', 'Refusals', scope, all);
}

export function showOfClient(scope) {
  byId('of-client').hidden = ofClient.identity === '';
  if (ofClient.identity !== '') ofClient.show('of-client', 'Refusals of this client', scope);
}

/** Loads the newest refusals, also those that came while there was no connection. */
export function loadRefusals() {
  if (newest.text === '') newest.load();
}

/** @param {string} identity '': none */
export function showRefusalsOf(identity) {
  if (identity === ofClient.identity) return;
  ofClient.ask('', identity);
  if (identity !== '') ofClient.load();
}

async function search(text) {
  if (ID.test(text)) return go(`why/${text}`);
  if (isAddress(text) || DIGEST.test(text)) {
    try {
      return go(`clients/${(await lookUp(text)).identity}`);
    } catch {
      // No address and no digest after all: search for the text.
    }
  }
  byId('search-text').value = text;
  go('overview');
  newest.ask(text, '');
  newest.problem = 'Searching…';
  redraw();
  await newest.load();
  byId('newest').scrollIntoView({ block: 'nearest' });
  if (text !== '') byId('newest-title').focus({ preventScroll: true });
}

on('search-form', 'submit', (event) => {
  event.preventDefault();
  search(event.target.text.value.trim());
});
