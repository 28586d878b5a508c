/** Refusals, grouped by client and policy: the newest ones as they come, and those that a search finds. */
import { call } from './api.js';
import { ACTIONS, CLIENT, isAddress, lookUp, takeAddresses } from './client.js';
import { button, byId, h, head, on, patch, redraw } from './dom.js';
import { letRowsMove, stacked } from './table.js';
import { clockTime, count } from './text.js';
import { go } from './views.js';

const GROUPS_MAX = 200;
/** Paths that are counted in a group. */
const PATHS_MAX = 500;
/** Pages that are loaded at once, until there are enough groups: in a flood, most refusals are of one. */
const PAGES_MAX = 10;
/** Groups that are shown at first, and added with each press of the button. */
const SHOWN = 10;
/** The stream has at most this many in a second. If it has as many, there are more in the store. */
const HEARD_MAX = 20;
/** Ids of records that are part of a group already. */
const IDS_MAX = 5000;
const ID = /^[0-9abcdefghjkmnpqrstvwxyz]{26}$/;
const DIGEST = /^[\w-]{22}$/;
const KINDS = {
  deny: '',
  unavailable: ', store unavailable',
  listed: ', list deny',
  banned: ', banned',
  busy: ', bound reached',
};

/**
 * `stored` are the records of the group, which stand for `count` refusals. `record` is the newest of them.
 *
 * @typedef {{ key: string, record: any, count: number, stored: number, firstAt: string, paths: Set<string> }} Group
 */

/** @param {Group} group */
function requestCell({ record, stored, paths }) {
  const { id, method, path, decision, policy } = record;
  const request = method === '' ? 'a connection' : `${method} ${path}`;
  const many = `${count(paths.size)}${paths.size < PATHS_MAX ? '' : ' or more'}`;
  const label = `Why was ${request} refused?`;
  return [
    h('a.code', { href: `#/why/${id}`, title: request, 'aria-label': label }, request),
    paths.size > 1 && h('div.soft', `${count(stored)} stored refusals on ${many} paths`),
    h('div.soft', { title: policy }, `${policy}${KINDS[decision] ?? `, ${decision}`}`),
  ];
}

/** A limit for everyone together names no client. */
function unlessEveryone(column) {
  return {
    ...column,
    cell: ({ record }) => (record.identifier === 'everyone' ? null : column.cell(record)),
  };
}

const COLUMNS = [
  {
    head: 'Last, first',
    kind: 'when nowrap',
    cell: ({ record, count: times, firstAt }) => [
      h('time', { datetime: record.at }, clockTime(record.at)),
      times > 1 && h('div.soft', `first ${clockTime(firstAt)}`),
    ],
  },
  { head: 'Count', kind: 'number count times', cell: (group) => count(group.count) },
  { head: 'Request, policy', kind: 'what', cell: requestCell },
  unlessEveryone(CLIENT),
  unlessEveryone(ACTIONS),
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
    /** @type {Map<string, Group>} */
    this.groups = new Map();
    this.ids = new Set();
  }

  /** New refusals of the stream. */
  hear(records) {
    if (this.text !== '') return;
    const mine = records.filter(({ identity }) => this.identity === '' || identity === this.identity);
    this.#group(mine);
    if (mine.length > 0 && records.length >= HEARD_MAX) this.next = records.at(-1).id;
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
        this.#group(page.decisions);
        if (page.next === null || this.groups.size >= most) break;
      }
    } catch (error) {
      this.problem = error.message;
    }
    letRowsMove();
    redraw();
  }

  async #showMore() {
    this.most = Math.min(this.most + 2 * SHOWN, GROUPS_MAX);
    if (this.groups.size < this.most && this.next !== null) return this.load(true);
    letRowsMove();
    redraw();
  }

  #group(records) {
    for (const record of records) {
      const { id, at, decision, path, policy, identity, refusals = 1 } = record;
      if (this.ids.has(id)) continue;
      if (this.ids.size >= IDS_MAX) this.ids.clear();
      this.ids.add(id);
      const key = [identity, decision, policy].join('\n');
      const group = this.groups.get(key) ?? {
        key,
        record,
        count: 0,
        stored: 0,
        firstAt: at,
        paths: new Set(),
      };
      this.groups.set(key, group);
      group.count += refusals;
      group.stored++;
      if (group.paths.size < PATHS_MAX) group.paths.add(path);
      if (at >= group.record.at) group.record = record;
      if (at < group.firstAt) group.firstAt = at;
    }
  }

  /** @param {string} id of the panel @param {string} title @param {...any} more buttons */
  show(id, title, scope, ...more) {
    const groups = [...this.groups.values()].sort((a, b) => b.record.at.localeCompare(a.record.at));
    for (const { key } of groups.splice(GROUPS_MAX)) this.groups.delete(key);
    const isAll = groups.length <= this.most && this.next === null;
    const hidden = isAll || this.most >= GROUPS_MAX;
    const older = button('Older refusals', '', () => this.#showMore(), { hidden });
    patch(
      byId(id),
      head(id, title, scope, h('p.soft', { id: `${id}-status`, role: 'status' }, this.#status())),
      stacked(id, COLUMNS, groups.slice(0, this.most)),
      h('div.buttons', older, more),
    );
  }

  #status() {
    if (this.problem !== '') return this.problem;
    const isEmpty = this.groups.size === 0;
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

export function wireRefusals() {
  on('search-form', 'submit', (event) => {
    event.preventDefault();
    search(event.target.text.value.trim());
  });
}
