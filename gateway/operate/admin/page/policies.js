/** The policies: a table of their traffic, and the file as loaded. */
import { call } from './api.js';
import { shadowPolicy, tellError, unshadowPolicy } from './changes.js';
import { button, byId, h, on, patch, redraw } from './dom.js';
import { letRowsMove, scrolled, table } from './table.js';
import { clockTime, count, quotaText } from './text.js';

/** The filter finds the others. */
const SHOWN_MAX = 100;
/** A longer file is shown to here. */
const LINES_MAX = 5000;

/** @type {{ file: string, version: string, refusal: string | null, areShadowsKnown: boolean, text: string, policies: any[] } | null} */
let loaded = null;

export async function loadPolicies() {
  try {
    loaded = await call('GET', '/api/policies');
  } catch (error) {
    return tellError(error);
  }
  redraw();
}

/** The edited file is not in use. */
export function isFileRefused() {
  return loaded !== null && loaded.refusal !== null;
}

/** A number of decisions. @param {(number: number) => any} [stateOf] class of a cell with this number */
function decisions(head, name, stateOf = () => null) {
  const state = ({ sums }) => stateOf(sums[name]);
  return { head, kind: 'number', state, cell: ({ sums }) => count(sums[name]) };
}

/** Most policies have none of these, and a phone has no room for them. */
function rare(number) {
  return number === 0 && 'zero';
}

const COLUMNS = [
  {
    head: 'Policy',
    isHeader: true,
    cell: ({ policy }) => [
      h('a', { href: `#/policies/${policy.line}` }, policy.name),
      h('div.soft', `${policy.route}, ${quotaText(policy)}`),
    ],
  },
  decisions('Denied', 'denied', (number) => number > 0 && 'bad'),
  decisions('Allowed', 'allowed'),
  decisions('Would be denied', 'shadowDenied', rare),
  decisions('Marked', 'marked', rare),
  decisions('Without the store', 'degraded', rare),
  { head: 'Mode', kind: 'actions', cell: ({ policy }) => modeOf(policy) },
];

function modeOf({ name, mode, shadowEndsAt }) {
  if (mode === 'shadow') return 'shadow, by the file';
  const verb = mode === 'mark' ? 'Mark' : 'Deny';
  const label = `Let ${name} ${verb.toLowerCase()} again`;
  const onlyShadow = () => shadowPolicy(name);
  const again = () => unshadowPolicy(name, shadowEndsAt);
  return shadowEndsAt === null
    ? [
        mode === 'mark' && 'mark, by the file ',
        button('Shadow…', 'small danger', onlyShadow, { 'aria-label': `Put ${name} in shadow` }),
      ]
    : [
        `shadow until ${clockTime(shadowEndsAt)} `,
        button(`${verb} again`, 'small', again, { 'aria-label': label }),
      ];
}

/** The policies that deny most come first. @param {import('./traffic.js').Traffic} traffic */
export function showPolicies(traffic) {
  if (loaded === null) return;
  const wanted = byId('policy-filter').value.trim().toLowerCase();
  const found = loaded.policies
    .filter(({ name, route }) => `${name} ${route}`.toLowerCase().includes(wanted))
    .map((policy) => ({ key: policy.name, policy, sums: traffic.policy(policy.name) }))
    .sort(({ sums: a }, { sums: b }) => {
      return b.denied - a.denied || b.shadowDenied - a.shadowDenied || b.allowed - a.allowed;
    });
  const others = found.length - SHOWN_MAX;
  patch(
    byId('policy-table'),
    scrolled('Traffic by policy', table('policies', COLUMNS, found.slice(0, SHOWN_MAX))),
    others > 0 && h('p.soft', `The filter finds ${count(others)} more policies.`),
  );
  showFile(loaded);
}

/** The text of the lines that are shown. */
let drawn = '';

function showFile({ file, version, refusal, areShadowsKnown, text, policies }) {
  const unknown = areShadowsKnown ? '' : '; the store is unavailable, so nobody knows which are in shadow';
  const problem = `The file was edited, and what it says now is not in use:\n${refusal}`;
  patch(byId('file-about'), `${file}, version ${version}, ${count(policies.length)} policies${unknown}`);
  byId('file-refusal').hidden = refusal === null;
  patch(byId('file-refusal'), refusal === null ? '' : problem);
  if (text === drawn) return;
  drawn = text;
  patch(byId('file'), scrolled('Policy file as loaded', h('ol', { id: 'file-lines' }, linesOf(text))));
  showLine(/^#\/policies\/(\d+)$/.exec(location.hash)?.[1] ?? '');
}

function linesOf(text) {
  const lines = text.replace(/\n$/, '').split('\n');
  const more = lines.length - LINES_MAX;
  const items = lines.slice(0, LINES_MAX).map((line, i) => h('li', { id: `line-${i + 1}` }, line));
  return more > 0 ? [...items, h('li', `… and ${count(more)} lines more`)] : items;
}

/** @param {string} line of the address; '': none */
export function showLine(line) {
  for (const item of document.querySelectorAll('#file-lines .current')) item.classList.remove('current');
  const item = document.getElementById(`line-${line}`);
  if (item === null) return;
  item.classList.add('current');
  item.scrollIntoView({ block: 'center' });
}

on('policy-filter', 'input', () => {
  letRowsMove();
  redraw();
});
