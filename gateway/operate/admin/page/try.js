/** Tries a request without sending it: what the gateway would do with it. */
import { call } from './api.js';
import { clientLink } from './client.js';
import { byId, errorText, facts, h, on, patch } from './dom.js';
import { table } from './table.js';
import { count, quotaText } from './text.js';
import { go } from './views.js';

const VERDICTS = {
  allow: ['', 'It would pass'],
  deny: ['bad', 'It would be refused'],
  uncovered: ['', 'It would pass: no policy counts it'],
  malformed: ['bad', 'It would be refused as malformed'],
};

const COLUMNS = [
  { head: 'Policy', isHeader: true, cell: policyLink },
  { head: 'Used', kind: 'number', cell: ({ used }) => count(used ?? 0) },
  { head: 'Limit', kind: 'named', cell: quotaText },
  {
    head: 'Left',
    kind: 'number',
    state: ({ remaining }) => remaining === 0 && 'bad',
    cell: ({ remaining }) => count(remaining ?? 0),
  },
  { head: 'Counted', kind: 'named', cell: ({ identity }) => identity && clientLink(identity) },
  { head: 'Why', cell: ({ reason }) => reason },
];

function policyLink({ name, line }) {
  return h('a', { href: `#/policies/${line}` }, name);
}

/** Fills the form for a request that was refused. */
export function tryRequest(method, path) {
  const form = byId('try-form');
  form.elements.namedItem('method').value = method;
  form.path.value = path;
  go('policies');
  byId('try').scrollIntoView({ block: 'nearest' });
  form.path.focus();
}

async function submit(form) {
  const { method, path, headers, from, ...more } = Object.fromEntries(
    [...new FormData(form)].map(([name, value]) => [name, String(value).trim()]),
  );
  const given = Object.entries(more).filter(([, value]) => value !== '');
  const result = byId('try-result');
  try {
    const explanation = await call('POST', '/api/explain', {
      request: `${method} ${path}`,
      headers: headers.split(/\s*\n\s*/).filter((line) => line !== ''),
      from,
      ...Object.fromEntries(given),
    });
    patch(result, told(explanation));
  } catch (error) {
    patch(result, errorText(error));
  }
  // On a phone the result is below the form.
  if (result.getBoundingClientRect().bottom > window.innerHeight) result.scrollIntoView({ block: 'start' });
}

function told({ decision, path, status, headers, reason, policies }) {
  const [kind, verdict] = VERDICTS[decision] ?? ['', decision];
  const applying = policies.filter(({ matched }) => matched).map((one) => ({ ...one, key: one.name }));
  const others = policies.filter(({ matched }) => !matched);
  return h(
    'div.result',
    h('h3', { class: kind }, status === null ? verdict : `${verdict} with ${status}`),
    h('p', 'Path that is matched: ', h('code', path)),
    reason && h('p', reason),
    applying.length > 0 && table('applying', COLUMNS, applying),
    others.length > 0 &&
      details(
        `${count(others.length)} policies do not apply`,
        h(
          'ul',
          others.map((policy) => h('li', policyLink(policy), `: ${policy.reason}`)),
        ),
      ),
    Object.keys(headers).length > 0 &&
      details('Headers that the gateway adds to the reply', facts(Object.entries(headers))),
  );
}

function details(summary, content) {
  return h('details', h('summary', summary), content);
}

on('try-form', 'submit', (event) => {
  event.preventDefault();
  submit(event.target);
});
