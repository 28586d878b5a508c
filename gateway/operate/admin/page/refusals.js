/** Refusals, grouped by client and policy: the newest ones as they come, and those that a search finds. */
import { call } from './api.js';
import { actionsFor, clientCell, isAddress, lookUp, takeAddresses } from './client.js';
import { byId, clockTime, count, el, Rows, setText } from './dom.js';
import { go } from './views.js';

const GROUPS_MAX = 200;
/** Paths that are counted in a group. */
const PATHS_MAX = 500;
/** Pages that are loaded at once, until there are enough groups. */
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
  unavailable: 'store unavailable',
  listed: 'list deny',
  banned: 'banned',
  busy: 'bound reached',
};

/**
 * `stored` are the records of the group, which stand for `count` refusals.
 *
 * @typedef {{ key: string, record: any, count: number, stored: number, firstAt: string, lastAt: string, paths: Set<string> }} Group
 */

class Refusals {
  /** @param {string} prefix of the ids in the page */
  constructor(prefix) {
    this.rows = new Rows(byId(`${prefix}-rows`), rowOf);
    this.status = byId(`${prefix}-status`);
    this.more = byId(`${prefix}-more`);
    this.more.addEventListener('click', () => this.showMore());
    this.ask('', '');
  }

  /** Changes what is shown; load() loads it. */
  ask(text, identity) {
    this.text = text;
    this.identity = identity;
    this.next = null;
    this.most = SHOWN;
    /** @type {Map<string, Group>} */
    this.groups = new Map();
    this.ids = new Set();
    /** New refusals have yet to be shown. */
    this.isStale = false;
  }

  /** New refusals of the stream. */
  hear(records) {
    if (this.text !== '') return;
    const mine = records.filter(({ identity }) => this.identity === '' || identity === this.identity);
    if (mine.length === 0) return;
    this.#group(mine);
    if (records.length >= HEARD_MAX) this.next = records.at(-1).id;
    this.isStale = true;
  }

  showMore() {
    this.most = Math.min(this.most + 2 * SHOWN, GROUPS_MAX);
    if (this.groups.size < this.most && this.next !== null) this.load(true);
    else this.show(true);
  }

  /** @param {boolean} isMore adds older ones to those that are loaded */
  async load(isMore = false) {
    const { text, identity, most } = this;
    const query = new URLSearchParams();
    if (text !== '') query.set('text', text);
    if (identity !== '') query.set('identity', identity);
    try {
      for (let pages = 0; pages < PAGES_MAX; pages++) {
        const isFirst = pages === 0 && !isMore;
        if (!isFirst && this.next !== null) query.set('before', this.next);
        const page = await call('GET', `/api/decisions?${query}`);
        // Another search has begun in the meantime.
        if (text !== this.text || identity !== this.identity) return;
        if (isFirst) this.ask(text, identity);
        this.most = most;
        this.next = page.next;
        takeAddresses(page.addresses);
        this.#group(page.decisions);
        this.show(true);
        if (page.next === null || this.groups.size >= most) return;
      }
    } catch (error) {
      setText(this.status, error.message);
    }
  }

  #group(records) {
    for (const record of records) {
      const { id, at, decision, path, policy, identity, refusals = 1 } = record;
      if (this.ids.has(id)) continue;
      if (this.ids.size >= IDS_MAX) this.ids.clear();
      this.ids.add(id);
      const key = [identity, decision, policy].join('\n');
      const group = this.groups.get(key);
      if (group === undefined) {
        this.groups.set(key, {
          ...{ key, record, count: refusals, stored: 1, firstAt: at, lastAt: at },
          paths: new Set([path]),
        });
        continue;
      }
      group.count += refusals;
      group.stored++;
      if (group.paths.size < PATHS_MAX) group.paths.add(path);
      if (at >= group.lastAt) Object.assign(group, { record, lastAt: at });
      if (at < group.firstAt) group.firstAt = at;
    }
  }

  show(isForced) {
    this.isStale = false;
    const groups = [...this.groups.values()].sort((a, b) => b.lastAt.localeCompare(a.lastAt));
    for (const { key } of groups.splice(GROUPS_MAX)) this.groups.delete(key);
    this.rows.show(groups.slice(0, this.most), isForced);
    const isAll = groups.length <= this.most && this.next === null;
    this.more.hidden = isAll || this.most >= GROUPS_MAX;
    const isEmpty = groups.length === 0;
    if (this.text !== '')
      setText(this.status, isEmpty ? `No refusal matches “${this.text}”` : `that match “${this.text}”`);
    else setText(this.status, isEmpty ? 'none stored' : 'newest first; of a flood only a sample is stored');
  }
}

function rowOf() {
  const last = el('time');
  const first = el('div', { class: 'soft' });
  const times = el('td', { class: 'number count' });
  const what = el('a', { class: 'code' });
  const extent = el('div', { class: 'soft' });
  const policy = el('div', { class: 'soft' });
  const client = clientCell();
  const actions = el('td', { class: 'actions' });
  const node = el(
    'tr',
    {},
    el('td', { class: 'when nowrap' }, last, first),
    times,
    el('td', { class: 'what' }, what, extent, policy),
    client.node,
    actions,
  );
  const fill = ({ record, count: seen, stored, firstAt, lastAt, paths }) => {
    const { id, method, path, decision, identity, identifier } = record;
    const request = method === '' ? 'a connection' : `${method} ${path}`;
    last.dateTime = lastAt;
    setText(last, clockTime(lastAt));
    setText(first, seen > 1 ? `first ${clockTime(firstAt)}` : '');
    setText(times, count(seen));
    setText(what, request);
    const many = `${count(paths.size)}${paths.size < PATHS_MAX ? '' : ' or more'}`;
    setText(extent, paths.size > 1 ? `${count(stored)} stored refusals on ${many} paths` : '');
    what.href = `#/why/${id}`;
    what.title = request;
    what.setAttribute('aria-label', `Why was ${request} refused?`);
    const kind = KINDS[decision] ?? decision;
    setText(policy, kind === '' ? record.policy : `${record.policy}, ${kind}`);
    policy.title = record.policy;
    // A limit for everyone together names no client.
    if (identifier === 'everyone') return setText(client.node, 'everyone');
    client.fill(identity);
    actionsFor(actions, identity);
  };
  return { node, fill };
}

/** @type {Refusals} */
let newest;
/** @type {Refusals} */
let ofClient;

/** @param {any[]} records */
export function hearRefusals(records) {
  newest.hear(records);
  if (ofClient.identity !== '') ofClient.hear(records);
}

/** Shows what was heard, and whether clients are banned. */
export function showRefusals() {
  for (const list of [newest, ofClient]) {
    if (list.isStale) list.show(false);
    else list.rows.fillAgain();
  }
}

/** Loads the newest refusals, also those that came while there was no connection. */
export function loadRefusals() {
  if (newest.text === '') newest.load();
}

/** @param {string} identity '': none */
export function showRefusalsOf(identity) {
  byId('client-refusals').hidden = identity === '';
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
  go('overview');
  newest.ask(text, '');
  setText(newest.status, 'Searching…');
  byId('newest-all').hidden = text === '';
  await newest.load();
  byId('refusals').scrollIntoView({ block: 'nearest' });
  if (text !== '') byId('newest-title').focus({ preventScroll: true });
}

export function wireRefusals() {
  newest = new Refusals('newest');
  ofClient = new Refusals('of-client');
  byId('search-form').addEventListener('submit', (event) => {
    event.preventDefault();
    search(event.target.text.value.trim());
  });
  byId('newest-all').addEventListener('click', () => {
    byId('search-text').value = '';
    search('');
  });
}
