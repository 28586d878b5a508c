/** Changes that an operator makes: asked first in a dialog, and told afterwards. Their opposite is where they were made. */
import { call } from './api.js';
import { announce, button, buttons, byId, h, patch } from './dom.js';
import { clockTime, count, spanText, untilText } from './text.js';

const DURATIONS = [900, 3600, 8 * 3600, 86_400];

/** Digest -> the ban, as far as this page has seen it. @type {Map<string, { until: string, reason: string, policy: string | null }>} */
export const bans = new Map();

/** Opens the dialog of the page. @param {string} title @param {...any} body */
export function openDialog(title, ...body) {
  const dialog = byId('dialog');
  // Fields of the dialog before it are not used again.
  dialog.replaceChildren();
  patch(dialog, h('h2', { id: 'dialog-title' }, title), body);
  if (!dialog.open) dialog.showModal();
  dialog.querySelector('select, input, button')?.focus();
}

export function closeDialog() {
  byId('dialog').close();
}

export function closeButton() {
  return button('Close', '', closeDialog);
}

/** Asks in a dialog. @returns {Promise<Record<string, any> | null>} its fields; null: better not */
function confirmed({ title, text, action, kind = '', fields = [] }) {
  return new Promise((resolve) => {
    let answer = null;
    const onsubmit = (event) => {
      event.preventDefault();
      answer = Object.fromEntries(new FormData(event.target));
      if (answer.seconds !== undefined) answer.seconds = Number(answer.seconds);
      closeDialog();
    };
    const confirm = h('button', { type: 'submit', class: `primary ${kind}` }, action);
    const actions = buttons(confirm, button('Cancel', '', closeDialog));
    openDialog(title, h('form.fields', { onsubmit }, h('p', text), fields, actions));
    byId('dialog').addEventListener('close', () => resolve(answer), { once: true });
  });
}

function durationField() {
  const options = DURATIONS.map((seconds) =>
    h('option', { value: seconds, selected: seconds === 3600 }, spanText(seconds)),
  );
  return h('label', 'For', h('select', { name: 'seconds' }, options));
}

/** @param {string} text */
function tell(text) {
  const toast = byId('change');
  // A screen reader also reads a text that was there before.
  toast.replaceChildren();
  patch(toast, h('span', text), button('Dismiss', '', dismissMessage));
  toast.hidden = false;
}

/** @param {{ message: string }} error */
export function tellError({ message }) {
  tell(`Not done: ${message}`);
}

/** The message belongs to the view that it came up in. */
export function dismissMessage() {
  byId('change').hidden = true;
}

/**
 * Asks, sends the fields of the dialog with the body, and tells what was done.
 *
 * @param {{ title: string, text: string, action: string, kind?: string, fields?: any[] }} question
 * @param {(reply: any, fields: any) => string} textOf
 */
async function change(path, body, question, textOf) {
  const fields = await confirmed(question);
  if (fields === null) return;
  try {
    const reply = await call('POST', path, { ...body, ...fields });
    if (reply.ban !== undefined) noteBan(reply.identity, reply.ban);
    tell(textOf(reply, fields));
  } catch (error) {
    tellError(error);
  } finally {
    announce('changed');
  }
}

/** @param {any} ban null: none */
export function noteBan(digest, ban) {
  if (ban === null) bans.delete(digest);
  else bans.set(digest, ban);
}

/** @param {{ digest: string, label: string }} client */
export function banClient({ digest, label }) {
  const field = h('input', { name: 'reason', maxlength: 200, autocomplete: 'off' });
  const question = {
    title: 'Ban this client?',
    text: `All requests of ${label} are refused (429) until the ban ends, also where no policy applies.`,
    action: 'Ban',
    kind: 'danger',
    fields: [durationField(), h('label', 'Reason, for colleagues', field)],
  };
  const told = (_reply, { seconds }) => `${label} is banned for ${spanText(seconds)}.`;
  return change('/api/ban', subjectOf(digest), question, told);
}

export function unbanClient({ digest, label }, ban) {
  const text = `${label} is banned ${untilText(ban)}.`;
  const question = { title: 'Unban this client?', text, action: 'Unban' };
  return change('/api/unban', subjectOf(digest), question, () => `${label} is let in again.`);
}

export function resetClient({ digest, label }) {
  const text = `Sets the counters of ${label} to zero on all gateways that share the store. The client can send requests again at once.`;
  const question = { title: 'Reset the counters?', text, action: 'Reset counters' };
  const told = ({ cleared }) => `${count(cleared)} counters of ${label} are reset.`;
  return change('/api/reset', subjectOf(digest), question, told);
}

export function shadowPolicy(policy) {
  const question = {
    title: `Put ${policy} in shadow?`,
    text: 'It goes on counting and reporting, and denies nothing, on every gateway that shares the store. So do policies that share its counter. When the time is over it denies again; the policy file stays as it is.',
    action: 'Put in shadow',
    kind: 'danger',
    fields: [durationField()],
  };
  const told = (_reply, { seconds }) => `${policy} denies nothing for ${spanText(seconds)}.`;
  return change('/api/shadow', { policy }, question, told);
}

export function unshadowPolicy(policy, endsAt) {
  const text = `It is in shadow until ${clockTime(endsAt)}.`;
  const question = { title: `Let ${policy} deny again?`, text, action: 'Deny again' };
  return change('/api/unshadow', { policy }, question, () => `${policy} denies again.`);
}

function subjectOf(digest) {
  return { subject: digest, kind: kindOf(digest) };
}

/** Of a banned network, the name is the network. @param {string} name */
export function kindOf(name) {
  return name.includes('/') ? 'network' : 'digest';
}
