/** Changes that an operator makes: asked first, told afterwards, and taken back with one button. */
import { call } from './api.js';
import { button, byId, clockTime, count, el, spanText } from './dom.js';

/** A reset cannot be taken back once it is done, so it waits so long. */
const UNDO_MS = 5000;

/** Digest -> the ban, as far as this page has seen it. @type {Map<string, { until: string, reason: string, policy: string | null }>} */
export const bans = new Map();

const DURATIONS = [900, 3600, 8 * 3600, 86_400];

/** Counters are about to be reset, and the message has the only way back. */
let isWaiting = false;

let onChanged = () => {};

/** @param {() => void} handler called after each change */
export function whenChanged(handler) {
  onChanged = handler;
}

/**
 * Opens the dialog of the page.
 *
 * @param {string} title
 * @param {Node[]} body
 */
export function openDialog(title, body) {
  const dialog = byId('dialog');
  dialog.replaceChildren(el('h2', { id: 'dialog-title' }, title), ...body);
  if (!dialog.open) dialog.showModal();
  dialog.querySelector('select, input, button')?.focus();
  return dialog;
}

export function closeDialog() {
  byId('dialog').close();
}

/** Asks, with what has to be said along. @returns {Promise<FormData | null>} null: better not */
function confirmed(title, text, action, fields = [], kind = 'danger') {
  return new Promise((resolve) => {
    const error = el('p', { class: 'error', role: 'alert', hidden: true });
    const form = el(
      'form',
      { class: 'fields' },
      el('p', {}, text),
      ...fields,
      error,
      el(
        'div',
        { class: 'buttons' },
        el('button', { type: 'submit', class: `primary ${kind}` }, action),
        button('Cancel', '', closeDialog),
      ),
    );
    const dialog = openDialog(title, [form]);
    let answer = null;
    form.addEventListener('submit', (event) => {
      event.preventDefault();
      answer = new FormData(form);
      dialog.close();
    });
    dialog.addEventListener('close', () => resolve(answer), { once: true });
  });
}

function durationField(label, chosen) {
  const options = DURATIONS.map((seconds) =>
    el('option', { value: seconds, selected: seconds === chosen }, spanText(seconds)),
  );
  return el('label', {}, label, el('select', { name: 'seconds' }, ...options));
}

/** @param {string} text @param {{ undo?: () => unknown, isBad?: boolean }} [more] */
export function tell(text, { undo, isBad = false } = {}) {
  const toast = byId('change');
  const dismiss = () => {
    toast.hidden = true;
  };
  const undoButton = button('Undo', '', () => {
    dismiss();
    undo();
  });
  const words = el('span', {}, isBad ? `Not done: ${text}` : text);
  toast.replaceChildren(words, ...(undo === undefined ? [] : [undoButton]), button('Dismiss', '', dismiss));
  toast.hidden = false;
}

/** The message belongs to the view that it came up in. */
export function dismissMessage() {
  if (!isWaiting) byId('change').hidden = true;
}

async function change(path, body, text, undo) {
  try {
    const reply = await call('POST', path, body);
    if (reply.ban === null) bans.delete(reply.identity);
    else if (reply.ban !== undefined) bans.set(reply.identity, reply.ban);
    tell(typeof text === 'function' ? text(reply) : text, undo === undefined ? {} : { undo });
    return reply;
  } catch (error) {
    tell(error.message, { isBad: true });
    return null;
  } finally {
    onChanged();
  }
}

/** @param {{ digest: string, label: string }} client */
export async function resetClient({ digest, label }) {
  const answer = await confirmed(
    'Reset the counters?',
    `Sets the counters of ${label} to zero on all gateways that share the store. The client can send requests again at once.`,
    'Reset counters',
    [],
    '',
  );
  if (answer === null) return;
  isWaiting = true;
  const timer = setTimeout(() => {
    isWaiting = false;
    change('/api/reset', { subject: digest, kind: kindOf(digest) }, ({ cleared }) =>
      cleared === 0 ? `${label} had used nothing.` : `${count(cleared)} counters of ${label} are reset.`,
    );
  }, UNDO_MS);
  tell(`The counters of ${label} are reset in ${UNDO_MS / 1000} seconds.`, {
    undo: () => {
      clearTimeout(timer);
      isWaiting = false;
      tell(`The counters of ${label} stay as they are.`);
    },
  });
}

export async function banClient({ digest, label }) {
  const answer = await confirmed(
    'Ban this client?',
    `All requests of ${label} are refused (429) until the ban ends, also where no policy applies.`,
    'Ban',
    [
      durationField('For', 3600),
      el(
        'label',
        {},
        'Reason, for colleagues',
        el('input', { name: 'reason', maxlength: 200, autocomplete: 'off' }),
      ),
    ],
  );
  if (answer === null) return;
  const seconds = Number(answer.get('seconds'));
  const reason = String(answer.get('reason'));
  await ban({ digest, label }, seconds, reason);
}

function ban({ digest, label }, seconds, reason) {
  const undo = () => lift({ digest }, `${label} is not banned any more.`);
  const body = { subject: digest, kind: kindOf(digest), seconds, reason };
  return change('/api/ban', body, `${label} is banned for ${spanText(seconds)}.`, undo);
}

function lift({ digest }, text, undo) {
  return change('/api/unban', { subject: digest, kind: kindOf(digest) }, text, undo);
}

/** @param {{ until: string, reason: string }} was */
export async function unbanClient(client, was) {
  const answer = await confirmed(
    'Unban this client?',
    `${client.label} is banned until ${clockTime(was.until)}${was.reason === '' ? '' : ` (${was.reason})`}.`,
    'Unban',
    [],
    '',
  );
  if (answer === null) return;
  await lift(client, `${client.label} is let in again.`, () =>
    ban(client, Math.max(1, Math.round((Date.parse(was.until) - Date.now()) / 1000)), was.reason),
  );
}

/** @param {number} seconds 0 hides them */
export function showAddresses(seconds) {
  const text = seconds === 0 ? 'Addresses are hidden.' : `Addresses are shown for ${spanText(seconds)}.`;
  return change('/api/addresses', { seconds }, text, seconds === 0 ? undefined : () => showAddresses(0));
}

export async function askForAddresses() {
  const answer = await confirmed(
    'Show addresses for ten minutes?',
    'Everybody who can open this page sees the addresses of clients that this gateway refuses from now on. They stay in its memory, and are dropped after ten minutes. The log says who switched this on.',
    'Show addresses',
    [],
    '',
  );
  if (answer !== null) await showAddresses(600);
}

export async function shadowPolicy(policy) {
  const answer = await confirmed(
    `Put ${policy} in shadow?`,
    'It goes on counting and reporting, and denies nothing, on every gateway that shares the store. So do policies that share its counter. When the time is over it denies again; the policy file stays as it is.',
    'Put in shadow',
    [durationField('For', 3600)],
  );
  if (answer === null) return;
  const seconds = Number(answer.get('seconds'));
  await change('/api/shadow', { policy, seconds }, `${policy} denies nothing for ${spanText(seconds)}.`, () =>
    change('/api/unshadow', { policy }, `${policy} denies again.`),
  );
}

/** @param {string} endsAt */
export async function unshadowPolicy(policy, endsAt) {
  const answer = await confirmed(
    `Let ${policy} deny again?`,
    `It is in shadow until ${clockTime(endsAt)}.`,
    'Deny again',
    [],
    '',
  );
  if (answer === null) return;
  await change('/api/unshadow', { policy }, `${policy} denies again.`, () => {
    const seconds = Math.max(1, Math.round((Date.parse(endsAt) - Date.now()) / 1000));
    return change('/api/shadow', { policy, seconds }, `${policy} is in shadow until ${clockTime(endsAt)}.`);
  });
}

/** Of a banned network, the name is the network. @param {string} name */
export function kindOf(name) {
  return name.includes('/') ? 'network' : 'digest';
}
