/** The policies: a table of their traffic, and the file as loaded with the same numbers in the margin of each row. */
import { call } from './api.js';
import { shadowPolicy, tell, unshadowPolicy } from './changes.js';
import { brief, button, byId, clockTime, count, el, quotaText, Rows, setText, svg } from './dom.js';
import { sum } from './traffic.js';
import { isShown } from './views.js';

const SHOWN = 15;
/** The filter finds the others. */
const SHOWN_MAX = 100;
/** A longer file is shown to here. */
const LINES_MAX = 5000;
const HEIGHT = 100;
/** The sums in the order of the table. */
const COLUMNS = ['denied', 'allowed', 'shadow_denied', 'marked', 'degraded'];

/** @type {{ file: string, version: string, refusal: string | null, areShadowsKnown: boolean, text: string, policies: any[], gateway: any } | null} */
let loaded = null;
let isAllShown = false;
/** @type {Rows} */
let rows;
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
  showLine(/^#\/policies\/(\d+)$/.exec(location.hash)?.[1] ?? '');
}

function showFile() {
  const { file, version, refusal, areShadowsKnown, text, policies, gateway } = loaded;
  const unknown = areShadowsKnown ? '' : '; the store is unavailable, so nobody knows which are in shadow';
  setText(byId('file-about'), `${file}, version ${version}, ${count(policies.length)} policies${unknown}`);
  setText(byId('about-gateway'), `Floodgate ${gateway.version} on Node.js ${gateway.nodeVersion}.`);
  byId('node-problem').hidden = gateway.problem === null;
  if (gateway.problem !== null)
    setText(byId('node-problem'), `${gateway.problem.message}: ${gateway.problem.fix}.`);
  const problem = byId('file-refusal');
  problem.hidden = refusal === null;
  setText(
    problem,
    refusal === null ? '' : `The file was edited, and what it says now is not in use:\n${refusal}`,
  );
  if (shownVersion !== version) {
    shownVersion = version;
    showLines(text, policies);
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
  return mode === 'enforce' ? '' : mode;
}

/** Shows the numbers of each row in its margin. */
function showMargins(sumsOf) {
  for (const margin of margins.values()) {
    const all = margin.together.map((one) => sumsOf.get(one) ?? {});
    const [denied, allowed] = ['denied', 'allowed'].map((count) => sum(all.map((sums) => sums[count] ?? 0)));
    const told = `denied ${denied}, allowed ${allowed} in the last hour`;
    if (margin.denied.title === told) continue;
    margin.denied.title = margin.allowed.title = told;
    setText(margin.denied, denied === 0 ? '' : brief(denied));
    setText(margin.allowed, allowed === 0 ? '' : brief(allowed));
  }
}

/** The policies that deny most come first. */
export function showTable(traffic, isForced = false) {
  if (loaded === null || !isShown('policies')) return;
  const all = loaded.policies.map((policy) => {
    const series = traffic.policy(policy.name);
    const sums = Object.fromEntries(COLUMNS.map((column) => [column, sum(series[column])]));
    return { key: policy.name, policy, series, sums };
  });
  showMargins(new Map(all.map(({ key, sums }) => [key, sums])));
  const spans = traffic.spans();
  const { lastSpan } = traffic;
  const wanted = byId('policy-filter').value.trim().toLowerCase();
  const found = all
    .filter(({ policy: { name, route } }) => `${name} ${route}`.toLowerCase().includes(wanted))
    .map((one) => ({ ...one, spans, lastSpan }))
    .sort(({ sums: a }, { sums: b }) => {
      return b.denied - a.denied || b.shadow_denied - a.shadow_denied || b.allowed - a.allowed;
    });
  rows.show(found.slice(0, isAllShown ? SHOWN_MAX : SHOWN), isForced);
  const more = byId('policies-more');
  more.hidden = found.length <= SHOWN;
  const most = Math.min(found.length, SHOWN_MAX);
  setText(
    more,
    isAllShown
      ? `Show ${SHOWN} only`
      : most < found.length
        ? `Show ${SHOWN_MAX} of ${count(found.length)} policies`
        : `Show all ${count(found.length)} policies`,
  );
}

function rowOf() {
  const heads = byId('policy-table').tHead.rows[0].cells;
  const cells = COLUMNS.map((_, i) => el('td', { class: 'number', 'data-head': heads[i + 1].textContent }));
  const spark = el('td', { class: 'trend' });
  const link = el('a');
  const about = el('div', { class: 'soft' });
  const mode = el('td', { class: 'actions' });
  const node = el('tr', {}, el('th', { scope: 'row' }, link, about), ...cells, spark, mode);
  let drawnAt = 0;
  const fill = ({ policy, sums, series, spans, lastSpan }) => {
    const { name, route, line } = policy;
    setText(link, name);
    link.href = `#/policies/${line}`;
    setText(about, `${route}, ${quotaText(policy)}`);
    COLUMNS.forEach((column, i) => {
      setText(cells[i], count(sums[column]));
      // Most policies have none of the last three, and a phone has no room for them.
      cells[i].classList.toggle('zero', i > 1 && sums[column] === 0);
    });
    cells[0].classList.toggle('bad', sums.denied > 0);
    showMode(mode, policy);
    // Drawing takes most of the time, so it happens once in each span.
    if (drawnAt !== lastSpan) spark.replaceChildren(sparkOf(series, spans));
    drawnAt = lastSpan;
  };
  return { node, fill };
}

/** @param {HTMLElement} cell */
function showMode(cell, { name, mode, shadowEndsAt }) {
  const state = `${mode} ${shadowEndsAt}`;
  const verb = mode === 'mark' ? 'Mark' : 'Deny';
  if (cell.dataset.state === state) return;
  cell.dataset.state = state;
  if (mode === 'shadow') setText(cell, 'shadow, by the file');
  else if (shadowEndsAt === null)
    cell.replaceChildren(
      mode === 'mark' ? 'mark, by the file ' : '',
      button('Shadow…', 'small danger', () => shadowPolicy(name), {
        'aria-label': `Put ${name} in shadow`,
      }),
    );
  else
    cell.replaceChildren(
      `shadow until ${clockTime(shadowEndsAt)} `,
      button(`${verb} again`, 'small', () => unshadowPolicy(name, shadowEndsAt), {
        'aria-label': `Let ${name} ${verb.toLowerCase()} again`,
      }),
    );
}

/** @param {Record<string, number[]>} series @param {number} spans the newest ones */
function sparkOf(series, spans) {
  const newest = (name) => Array.from({ length: spans }, (_, i) => series[name].at(i - spans) ?? 0);
  const [allowed, denied, marked] = [newest('allowed'), newest('denied'), newest('marked')];
  // A policy in shadow mode marks nothing, so both have one colour.
  const over = newest('shadow_denied').map((value, i) => value + marked[i]);
  const below = allowed.map((value, i) => value + over[i]);
  const highest = Math.max(1, ...below.map((value, i) => value + denied[i]));
  const bars = (kind, values, from) =>
    svg('path', {
      class: kind,
      d: values
        .map((value, x) => {
          if (value === 0) return '';
          // The smallest value is still visible.
          const height = Math.max((value / highest) * HEIGHT, 4);
          const y = Math.max(0, HEIGHT - ((from[x] ?? 0) / highest) * HEIGHT - height);
          return `M${x} ${y.toFixed(1)}h1v${height.toFixed(1)}h-1z`;
        })
        .join(''),
    });
  return svg(
    'svg',
    { viewBox: `0 0 ${allowed.length} ${HEIGHT}`, preserveAspectRatio: 'none', 'aria-hidden': 'true' },
    bars('fill-passed', allowed, []),
    bars('fill-shadow', over, allowed),
    bars('fill-refused', denied, below),
  );
}

/** @param {string} line of the address; '': none */
export function showLine(line) {
  for (const item of document.querySelectorAll('#file-lines .current')) item.classList.remove('current');
  const item = document.getElementById(`line-${line}`);
  if (item === null) return;
  item.classList.add('current');
  item.scrollIntoView({ block: 'center' });
}

/** @param {import('./traffic.js').Traffic} traffic */
export function wirePolicies(traffic) {
  rows = new Rows(byId('policy-table').tBodies[0], rowOf);
  byId('policy-filter').addEventListener('input', () => showTable(traffic, true));
  byId('policies-more').addEventListener('click', () => {
    isAllShown = !isAllShown;
    showTable(traffic, true);
  });
}
