/** Why a request was refused, as `floodgate why` explains it, and what an operator can do about it. */
import { call } from './api.js';
import { closeButton, openDialog, shadowPolicy } from './changes.js';
import { clientPanel, lookUp } from './client.js';
import { button, buttons, byId, errorText, facts, h, patch } from './dom.js';
import { localTimes } from './text.js';
import { tryRequest } from './try.js';
import { go } from './views.js';

const TITLE = 'Why was it refused?';

/** @param {string} id */
export async function why(id) {
  try {
    const decision = await call('GET', `/api/decisions/${encodeURIComponent(id)}`);
    tell(id, decision);
    const client = byId('why-client');
    patch(client, await lookUp(decision.identity, 'digest').then(clientPanel, errorText));
  } catch (error) {
    openDialog(TITLE, errorText(error), buttons(closeButton()));
  }
}

function tell(id, { what, reasons, facts: named, advice, method, path, line, decision, policy }) {
  const isByPolicy = decision === 'deny';
  openDialog(
    TITLE,
    h('p', localTimes(what)),
    reasons.map((text) => h('p', h('strong', text))),
    facts([...named.map(([name, value]) => [name, localTimes(value)]), ['Decision', h('code', id)]]),
    h('p', advice),
    h('h3', 'The client now'),
    h('div', { id: 'why-client', 'aria-live': 'polite' }),
    buttons(
      method && button('Try this request', '', () => tryRequest(method, path)),
      line > 0 && button('Show the policy', '', () => go(`policies/${line}`)),
      isByPolicy && button('Shadow the policy…', 'danger', () => shadowPolicy(policy)),
      closeButton(),
    ),
  );
}
