/** The policies: a table of their traffic, and the file as loaded with the same numbers in the margin of each row. */
import { call } from './api.js';
import { shadowPolicy, tell, unshadowPolicy } from './changes.js';
import { brief, byId, clockTime, count, el, quotaText, setText, svg } from './dom.js';
import { path } from './now.js';
import { takeFile } from './replay.js';
import { zeroes } from './traffic.js';

const SHOWN = 25;
/** A longer file is shown to here; its end is seldom what is asked for. */
const LINES_MAX = 20_000;
const DENIED = 1;
/** In the order of the table. What narrow screens have no column for has a name, and stands below the policy's. */
const COLUMNS = [
  { at: DENIED, kind: 'number', name: '' },
  { at: 0, kind: 'number', name: '' },
  { at: 2, kind: 'number wide', name: 'would be denied' },
  { at: 3, kind: 'number wide', name: 'without the store' },
];

/** @type {{ file: string, version: string, refusal: string | null, areShadowsKnown: boolean, text: string, policies: any[] } | null} */
let loaded = null;
let isAllShown = false;
/** Name -> the cells of its row in the table. */
const rows = new Map();
/** Name -> the margin of its line in the file. */
const margins = new Map();
/** What the text on the page was made of. */
let shownVersion = '';

/** @param {import('./traffic.js').Traffic} traffic */
export async function loadPolicies(traffic) {
  try {
    loaded = await call('GET', '/api/policies');
  } catch (error) {
    tell(error.message, { isBad: true });
    return;
  }
  showFile();
  showTable(traffic);
  showCounts(traffic, new Set(margins.keys()));
}

function showFile() {
  const { file, version, refusal, areShadowsKnown, text, policies } = loaded;
  const unknown = areShadowsKnown ? '' : '; the store is away, and cannot say which are in shadow';
  setText(byId('file-about'), `${file}, version ${version}, ${count(policies.length)} policies${unknown}`);
  const problem = byId('file-refusal');
  problem.hidden = refusal === null;
  setText(
    problem,
    refusal === null ? '' : `The file was edited, and what it says now is not in use:\n${refusal}`,
  );
  if (shownVersion !== version) {
    shownVersion = version;
    showLines(text, policies);
    takeFile(text);
  }
  for (const policy of policies) {
    const margin = margins.get(policy.name);
    if (margin !== undefined) setText(margin.flag, flagOf(policy));
  }
}

function showLines(text, policies) {
  margins.clear();
  const byLine = Map.groupBy(policies, ({ line }) => line);
  const lines = text.replace(/\n$/, '').split('\n');
  const items = lines.slice(0, LINES_MAX).map((line, i) => {
    const here = byLine.get(i + 1) ?? [];
    const [denied, allowed] = [el('span', { class: 'denied' }), el('span', { class: 'allowed' })];
    const flag = el('span', { class: 'flag' });
    // Limits of one row have lines of their own, unless somebody wrote them into one.
    for (const { name } of here)
      margins.set(name, { denied, allowed, flag, together: here.map((one) => one.name) });
    const number = el('span', { class: 'line' }, String(i + 1));
    return el('li', { id: `line-${i + 1}` }, denied, allowed, number, el('code', {}, line), flag);
  });
  if (lines.length > LINES_MAX)
    items.push(el('li', {}, `… and ${count(lines.length - LINES_MAX)} lines more`));
  byId('file-lines').replaceChildren(...items);
}

function flagOf({ mode, shadowEndsAt }) {
  if (shadowEndsAt !== null) return `in shadow until ${clockTime(shadowEndsAt)}`;
  return mode === 'shadow' ? 'shadow' : '';
}

/** @param {import('./traffic.js').Traffic} traffic @param {Set<string>} changed policies */
export function showCounts(traffic, changed) {
  for (const name of changed) {
    const margin = margins.get(name);
    if (margin !== undefined) {
      const sums = margin.together.map((one) => traffic.of(one).sums);
      const of = (i) => sums.reduce((all, one) => all + one[i], 0);
      setText(margin.denied, of(DENIED) === 0 ? '' : brief(of(DENIED)));
      setText(margin.allowed, of(0) === 0 ? '' : brief(of(0)));
      const told = `denied ${count(of(DENIED))}, allowed ${count(of(0))} in the last hour`;
      if (margin.denied.title !== told) margin.denied.title = margin.allowed.title = told;
    }
    const row = rows.get(name);
    if (row !== undefined) fillRow(row, traffic.of(name));
  }
}

/** Sorted anew: not each second, or nobody could click. */
export function showTable(traffic) {
  if (loaded === null) return;
  const wanted = byId('policy-filter').value.trim().toLowerCase();
  const found = loaded.policies
    .filter(({ name, route }) => `${name} ${route}`.toLowerCase().includes(wanted))
    .map((policy) => ({ policy, sums: traffic.of(policy.name).sums }))
    .sort((a, b) => b.sums[1] - a.sums[1] || b.sums[2] - a.sums[2] || b.sums[0] - a.sums[0]);
  const shown = isAllShown ? found : found.slice(0, SHOWN);
  const body = byId('policy-table').tBodies[0];
  const hadFocus = body.contains(document.activeElement)
    ? document.activeElement?.closest('tr')?.dataset.policy
    : null;
  rows.clear();
  body.replaceChildren(...shown.map(({ policy }) => rowOf(policy, traffic)));
  if (hadFocus) rows.get(hadFocus)?.button.focus();
  const more = byId('policies-more');
  more.hidden = found.length <= SHOWN;
  setText(more, isAllShown ? `The first ${SHOWN} only` : `All ${count(found.length)} policies`);
}

function rowOf(policy, traffic) {
  const { name, route, line, mode, shadowEndsAt } = policy;
  const cells = COLUMNS.map(({ kind }) => el('td', { class: kind }));
  const spark = el('td', { class: 'wide' });
  const isShadowed = shadowEndsAt !== null;
  const button = isShadowed
    ? el(
        'button',
        { type: 'button', class: 'small', onclick: () => unshadowPolicy(name, shadowEndsAt) },
        'Deny again',
      )
    : el('button', { type: 'button', class: 'small', onclick: () => shadowPolicy(name) }, 'Shadow…');
  const isWritten = mode === 'shadow';
  const state = isWritten
    ? 'shadow, by the file'
    : isShadowed
      ? `shadow until ${clockTime(shadowEndsAt)} `
      : '';
  const more = el('div', { class: 'narrow' });
  const row = { cells, spark, button, more };
  rows.set(name, row);
  fillRow(row, traffic.of(name));
  const head = el(
    'th',
    { scope: 'row' },
    el('a', { href: `#line-${line}`, onclick: () => showLine(line) }, name),
    el('div', { class: 'soft' }, `${route}, ${quotaText(policy)}`),
    more,
  );
  const tr = el('tr', {}, head, ...cells, spark, el('td', {}, state, isWritten ? null : button));
  tr.dataset.policy = name;
  button.setAttribute('aria-label', isShadowed ? `Let ${name} deny again` : `Put ${name} in shadow`);
  return tr;
}

function fillRow({ cells, spark, more }, { sums, series }) {
  COLUMNS.forEach(({ at }, i) => {
    setText(cells[i], count(sums[at]));
  });
  cells[0].classList.toggle('bad', sums[DENIED] > 0);
  const hidden = COLUMNS.filter(({ at, name }) => name !== '' && sums[at] > 0);
  setText(more, hidden.map(({ at, name }) => `${name}: ${count(sums[at])}`).join(', '));
  const highest = Math.max(1, ...series[0].map((value, i) => value + series[DENIED][i] + series[2][i]));
  const below = series[0].map((value, i) => value + series[2][i]);
  spark.replaceChildren(
    svg(
      'svg',
      {
        class: 'spark',
        viewBox: `0 0 ${series[0].length} 100`,
        preserveAspectRatio: 'none',
        'aria-hidden': 'true',
      },
      path('fill-allowed', series[0], zeroes(), highest),
      path('fill-shadow', series[2], series[0], highest),
      path('fill-denied', series[DENIED], below, highest),
    ),
  );
}

export function showLine(line) {
  for (const item of document.querySelectorAll('#file-lines .current')) item.classList.remove('current');
  const item = document.getElementById(`line-${line}`);
  if (item === null) return;
  item.classList.add('current');
  item.scrollIntoView({ block: 'center' });
}

/** @param {import('./traffic.js').Traffic} traffic */
export function wirePolicies(traffic) {
  byId('policy-filter').addEventListener('input', () => showTable(traffic));
  byId('policies-more').addEventListener('click', () => {
    isAllShown = !isAllShown;
    showTable(traffic);
  });
}
