/** Why a request was refused, as `floodgate why` explains it, and what an operator can do about it. */
import { call } from './api.js';
import { closeDialog, openDialog, shadowPolicy } from './changes.js';
import { clientPanel, lookUp } from './client.js';
import { button, el, localTimes } from './dom.js';
import { tryRequest } from './try.js';
import { go } from './views.js';

const TITLE = 'Why was it refused?';

/** @param {string} id */
export async function why(id) {
  let decision;
  try {
    decision = await call('GET', `/api/decisions/${encodeURIComponent(id)}`);
  } catch (error) {
    openDialog(TITLE, [el('p', { class: 'error' }, error.message), buttons()]);
    return;
  }
  const { what, reasons, facts, advice } = decision;
  const rows = facts.flatMap(([name, value]) => [el('dt', {}, name), el('dd', {}, localTimes(value))]);
  const client = el('div', { 'aria-live': 'polite' });
  const more = [];
  if (decision.method)
    more.push(button('Try this request', '', () => tryRequest(decision.method, decision.path)));
  if (decision.line > 0) more.push(button('Show the policy', '', () => go(`policies/${decision.line}`)));
  if (decision.decision === 'deny' && decision.policy !== null)
    more.push(button('Shadow the policy…', 'danger', () => shadowPolicy(decision.policy)));
  openDialog(TITLE, [
    el('p', {}, localTimes(what)),
    ...reasons.map((text) => el('p', {}, el('strong', {}, text))),
    el('dl', { class: 'facts' }, ...rows, el('dt', {}, 'Decision'), el('dd', {}, el('code', {}, id))),
    el('p', {}, advice),
    ...(decision.identity === null ? [] : [el('h3', {}, 'The client now'), client]),
    buttons(...more),
  ]);
  if (decision.identity === null) return;
  try {
    client.append(clientPanel(await lookUp(decision.identity, 'digest')));
  } catch (error) {
    client.append(el('p', { class: 'error' }, error.message));
  }
}

function buttons(...more) {
  return el('div', { class: 'buttons' }, ...more, button('Close', '', closeDialog));
}
