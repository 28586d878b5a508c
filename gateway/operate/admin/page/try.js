/** Tries a request without sending it: what the gateway would do with it. */
import { call } from './api.js';
import { clientText } from './client.js';
import { byId, count, el, figures, quotaText } from './dom.js';
import { go } from './views.js';

const VERDICTS = {
  allow: ['good', 'It would pass'],
  deny: ['bad', 'It would be refused'],
  uncovered: ['good', 'It would pass: no policy counts it'],
  malformed: ['bad', 'It would be refused as malformed'],
};

/** Fills the form for a request that was refused. */
export function tryRequest(method, path) {
  const form = byId('try-form');
  if ([...form.method.options].some(({ value }) => value === method))
    form.elements.namedItem('method').value = method;
  form.path.value = path;
  go('policies');
  byId('try').scrollIntoView({ block: 'nearest' });
  form.path.focus();
}

async function submit(form) {
  const fields = new FormData(form);
  const headers = String(fields.get('headers'))
    .split('\n')
    .map((line) => line.trim());
  const plan = String(fields.get('plan')).trim();
  const body = String(fields.get('body')).trim();
  const result = byId('try-result');
  try {
    const explanation = await call('POST', '/api/explain', {
      request: `${fields.get('method')} ${String(fields.get('path')).trim()}`,
      headers: headers.filter((line) => line !== ''),
      from: String(fields.get('from')).trim(),
      ...(body === '' ? {} : { body }),
      ...(plan === '' ? {} : { plan }),
    });
    result.replaceChildren(told(explanation));
  } catch (error) {
    result.replaceChildren(el('p', { class: 'error' }, error.message));
  }
  // On a phone the result is below the form.
  if (result.getBoundingClientRect().bottom > window.innerHeight) result.scrollIntoView({ block: 'start' });
}

function told({ decision, path, status, headers, reason, policies }) {
  const [kind, verdict] = VERDICTS[decision] ?? ['', decision];
  const applying = policies.filter(({ matched }) => matched);
  const others = policies.filter(({ matched }) => !matched);
  return el(
    'div',
    { class: 'result' },
    el('p', { class: `verdict ${kind}` }, status === null ? verdict : `${verdict} with ${status}`),
    el('p', {}, 'Path that is matched: ', el('code', {}, path)),
    reason === null ? null : el('p', {}, reason),
    applying.length === 0 ? null : tableOf(applying),
    others.length === 0
      ? null
      : el(
          'details',
          {},
          el('summary', {}, `${count(others.length)} policies do not apply`),
          el('ul', {}, ...others.map((policy) => el('li', {}, rowLink(policy), `: ${policy.reason}`))),
        ),
    Object.keys(headers).length === 0
      ? null
      : el(
          'details',
          {},
          el('summary', {}, 'Headers that the gateway adds to the reply'),
          el(
            'dl',
            { class: 'facts' },
            ...Object.entries(headers).flatMap(([name, value]) => [el('dt', {}, name), el('dd', {}, value)]),
          ),
        ),
  );
}

function tableOf(policies) {
  const rows = policies.map((policy) =>
    el(
      'tr',
      {},
      el('th', { scope: 'row' }, rowLink(policy)),
      el('td', {}, count(policy.used ?? 0)),
      el('td', { class: 'nowrap' }, quotaText(policy)),
      el('td', { class: policy.remaining === 0 ? 'bad' : '' }, count(policy.remaining ?? 0)),
      el('td', {}, policy.identity === null ? '' : clientText(policy.identity)),
      el('td', {}, policy.reason),
    ),
  );
  return figures('Policies that apply', ['Policy', 'Used', 'Limit', 'Left', 'Counted', 'Why'], rows);
}

function rowLink({ name, line }) {
  return el('a', { href: `#/policies/${line}` }, name);
}

export function wireTry() {
  byId('try-form').addEventListener('submit', (event) => {
    event.preventDefault();
    submit(event.target);
  });
}
