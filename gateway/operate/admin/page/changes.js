/** Changes that an operator makes: asked first in a dialog, and told afterwards. Their opposite is where they were made. */
import { call } from './api.js';
import { button, buttons, byId, h, patch } from './dom.js';
import { clockTime, count, spanText, untilText } from './text.js';

const DURATIONS = [900, 3600, 8 * 3600, 86_400];

/** Digest -> the ban, as far as this page has seen it. @type {Map<string, { until: string, reason: string, policy: string | null }>} */
export const bans = new Map();

let onChanged = () => {};

/** @param {() => void} handler called after each change */
export function whenChanged(handler) {
  onChanged = handler;
}

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

/** Asks in a dialog. @returns {Promise<FormData | null>} null: better not */
function confirmed(title, { text, action, kind = '', fields = [] }) {
  return new Promise((resolve) => {
    let answer = null;
    const onsubmit = (event) => {
      event.preventDefault();
      answer = new FormData(event.target);
      closeDialog();
    };
    const confirm = h('button', { type: 'submit', class: `primary ${kind}` }, action);
    const form = h(
      'form.fields',
      { onsubmit },
      h('p', text),
      fields,
      buttons(confirm, button('Cancel', '', closeDialog)),
    );
    openDialog(title, form);
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
export function tell(text) {
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

/** @param {(reply: any) => string} textOf */
async function change(path, body, textOf) {
  try {
    const reply = await call('POST', path, body);
    if (reply.ban === null) bans.delete(reply.identity);
    else if (reply.ban !== undefined) bans.set(reply.identity, reply.ban);
    tell(textOf(reply));
  } catch (error) {
    tellError(error);
  } finally {
    onChanged();
  }
}

/** @param {{ digest: string, label: string }} client */
export async function banClient({ digest, label }) {
  const field = h('input', { name: 'reason', maxlength: 200, autocomplete: 'off' });
  const answer = await confirmed('Ban this client?', {
    text: `All requests of ${label} are refused (429) until the ban ends, also where no policy applies.`,
    action: 'Ban',
    kind: 'danger',
    fields: [durationField(), h('label', 'Reason, for colleagues', field)],
  });
  if (answer === null) return;
  const [seconds, reason] = [Number(answer.get('seconds')), String(answer.get('reason'))];
  const told = () => `${label} is banned for ${spanText(seconds)}.`;
  await change('/api/ban', { ...subjectOf(digest), seconds, reason }, told);
}

export async function unbanClient({ digest, label }, ban) {
  const text = `${label} is banned ${untilText(ban)}.`;
  const answer = await confirmed('Unban this client?', { text, action: 'Unban' });
  if (answer !== null) await change('/api/unban', subjectOf(digest), () => `${label} is let in again.`);
}

export async function resetClient({ digest, label }) {
  const answer = await confirmed('Reset the counters?', {
    text: `Sets the counters of ${label} to zero on all gateways that share the store. The client can send requests again at once.`,
    action: 'Reset counters',
  });
  const told = ({ cleared }) =>
    cleared === 0 ? `${label} had used nothing.` : `${count(cleared)} counters of ${label} are reset.`;
  if (answer !== null) await change('/api/reset', subjectOf(digest), told);
}

export async function shadowPolicy(policy) {
  const answer = await confirmed(`Put ${policy} in shadow?`, {
    text: 'It goes on counting and reporting, and denies nothing, on every gateway that shares the store. So do policies that share its counter. When the time is over it denies again; the policy file stays as it is.',
    action: 'Put in shadow',
    kind: 'danger',
    fields: [durationField()],
  });
  if (answer === null) return;
  const seconds = Number(answer.get('seconds'));
  await change(
    '/api/shadow',
    { policy, seconds },
    () => `${policy} denies nothing for ${spanText(seconds)}.`,
  );
}

export async function unshadowPolicy(policy, endsAt) {
  const text = `It is in shadow until ${clockTime(endsAt)}.`;
  const answer = await confirmed(`Let ${policy} deny again?`, { text, action: 'Deny again' });
  if (answer !== null) await change('/api/unshadow', { policy }, () => `${policy} denies again.`);
}

export function hideAddresses() {
  return change('/api/addresses', { seconds: 0 }, () => 'Addresses are hidden.');
}

export async function askForAddresses() {
  const answer = await confirmed('Show addresses for ten minutes?', {
    text: 'Everybody who can open this page sees the addresses of clients that this gateway refuses from now on. They stay in its memory, and are dropped after ten minutes. The log says who switched this on.',
    action: 'Show addresses',
  });
  const told = () => 'Addresses are shown for 10 min.';
  if (answer !== null) await change('/api/addresses', { seconds: 600 }, told);
}

function subjectOf(digest) {
  return { subject: digest, kind: kindOf(digest) };
}

/** Of a banned network, the name is the network. @param {string} name */
export function kindOf(name) {
  return name.includes('/') ? 'network' : 'digest';
}
