/** What came of a replay: totals, each policy before and after, and whom the edit hits. */
import { clientText } from './client.js';
import { clockTime, count, el, figures, timeOf } from './dom.js';

/** Those that change most come first. */
const POLICIES_MAX = 200;

export function replayResult(result) {
  const { requests, from, to, allowed, denied, uncovered, malformed, banned, unknown, unreadable, lines } =
    result;
  const parts = [
    `${count(allowed)} allowed`,
    `${count(denied)} denied`,
    `${count(uncovered)} without a policy`,
  ];
  if (malformed > 0) parts.push(`${count(malformed)} malformed`);
  if (banned > 0) parts.push(`${count(banned)} of banned clients`);
  if (unknown > 0) parts.push(`${count(unknown)} cannot be judged`);
  const notes = result.notes.map((note) => `${note}.`);
  if (unreadable > 0)
    notes.push(
      `${count(unreadable)} of ${count(lines)} lines could not be read, such as line ${result.unreadableLines[0]?.line}: ${result.unreadableLines[0]?.text}`,
    );
  return el(
    'div',
    { class: 'result' },
    el('p', { class: `verdict ${result.newlyDenied > 0 ? 'bad' : 'good'}` }, verdictOf(result)),
    el(
      'p',
      {},
      `${count(requests)} requests from ${clockTime(from)} to ${clockTime(to)}: ${parts.join(', ')}.`,
    ),
    result.logged === null ? null : el('p', {}, loggedText(result.logged)),
    policyTable(result),
    clients('Newly denied', 'bad', result.mostNewlyDenied),
    clients('Newly allowed', 'good', result.mostNewlyAllowed),
    notes.length === 0 ? null : el('h3', {}, 'Notes'),
    notes.length === 0 ? null : el('ul', {}, ...notes.map((note) => el('li', {}, note))),
  );
}

function verdictOf({ newlyDenied, newlyAllowed, identitiesNewlyDenied, identitiesNewlyAllowed }) {
  if (newlyDenied === 0 && newlyAllowed === 0) return 'The edit changes nothing for these requests.';
  const parts = [];
  if (newlyDenied > 0)
    parts.push(
      `denies ${counted(newlyDenied, 'request')} of ${counted(identitiesNewlyDenied, 'client')} more`,
    );
  if (newlyAllowed > 0)
    parts.push(
      `allows ${counted(newlyAllowed, 'request')} of ${counted(identitiesNewlyAllowed, 'client')} more`,
    );
  return `The edited file ${parts.join(', and ')}.`;
}

function loggedText({ denied, newlyDenied, newlyAllowed }) {
  return `The gateway that wrote the log denied ${count(denied)}; the edited file denies ${count(newlyDenied)} that it let through, and lets ${count(newlyAllowed)} through that it denied.`;
}

function counted(value, what) {
  return `${count(value)} ${what}${value === 1 ? '' : 's'}`;
}

function policyTable({ policies, policiesAgainst }) {
  const before = new Map(policiesAgainst.map((policy) => [policy.name, policy]));
  const names = new Set(policies.map(({ name }) => name));
  const all = [
    ...policies.map((after) => ({ before: before.get(after.name) ?? null, after })),
    ...policiesAgainst.filter(({ name }) => !names.has(name)).map((one) => ({ before: one, after: null })),
  ].sort((a, b) => changeOf(b) - changeOf(a) || deniedOf(b.after) - deniedOf(a.after));
  const heads = ['Policy', 'Denied', 'Allowed', 'Clients', 'Denied clients', 'First denied'];
  return el(
    'div',
    {},
    el('h3', {}, 'By policy'),
    el('p', { class: 'soft' }, 'Under the file in use → under the edited one.'),
    figures('Replay by policy', heads, all.slice(0, POLICIES_MAX).map(rowOf), { id: 'replay-table' }),
    all.length <= POLICIES_MAX
      ? null
      : el('p', { class: 'soft' }, `and ${count(all.length - POLICIES_MAX)} policies that change less`),
  );
}

function deniedOf(policy) {
  if (policy === null) return 0;
  if (policy.mode === 'mark') return policy.marked;
  return policy.mode === 'shadow' ? policy.shadowDenied : policy.denied;
}

function changeOf({ before, after }) {
  return (
    Math.abs(deniedOf(after) - deniedOf(before)) + Math.abs((after?.allowed ?? 0) - (before?.allowed ?? 0))
  );
}

function rowOf({ before, after }) {
  const told = after ?? before;
  const state = after === null ? ' (removed)' : before === null ? ' (new)' : '';
  const mode = told.mode === 'enforce' ? '' : ` (${told.mode})`;
  const change = (of) => changed(before === null ? null : of(before), after === null ? null : of(after));
  const isWorse = deniedOf(after) > deniedOf(before);
  return el(
    'tr',
    {},
    el('th', { scope: 'row' }, `${told.name}${state}`),
    el('td', { class: `nowrap ${isWorse ? 'bad' : ''}` }, `${change(deniedOf)}${mode}`),
    el(
      'td',
      { class: 'nowrap' },
      change(({ allowed }) => allowed),
    ),
    el(
      'td',
      { class: 'nowrap' },
      change(({ identities }) => identities),
    ),
    el(
      'td',
      { class: 'nowrap' },
      change(({ identitiesDenied }) => identitiesDenied),
    ),
    el('td', { class: 'nowrap' }, after?.firstDeniedAt ? timeOf(after.firstDeniedAt) : '–'),
  );
}

function changed(before, after) {
  const text = (value) => (value === null ? '–' : count(value));
  return before === after ? text(after) : `${text(before)} → ${text(after)}`;
}

function clients(title, kind, most) {
  if (most.length === 0) return null;
  return el(
    'div',
    {},
    el('h3', {}, title),
    el(
      'ol',
      { class: 'limited' },
      ...most.map(({ identity, count: times }) =>
        el('li', {}, clientText(identity), ' ', el('span', { class: kind }, counted(times, 'time'))),
      ),
    ),
  );
}
