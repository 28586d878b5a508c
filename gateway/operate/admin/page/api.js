/** The admin API, as this page asks it. The cookie of the session goes along by itself; its proof is kept here. */
import { announce } from './dom.js';

const PROOF = 'floodgate-proof';

/** @param {number} status 0: nobody answered @param {string} message */
function apiError(status, message) {
  return Object.assign(new Error(message), { status });
}

async function send(method, path, body, signal) {
  const headers = new Headers({ 'x-floodgate-proof': localStorage.getItem(PROOF) ?? '' });
  if (body !== undefined) headers.set('content-type', 'application/json');
  const reply = await fetch(path, {
    method,
    headers,
    body: body === undefined ? null : JSON.stringify(body),
    signal,
  }).catch(() => {
    throw apiError(0, 'the gateway does not answer');
  });
  if (reply.ok) return reply;
  const { message = `the gateway answered ${reply.status}` } = await reply.json().catch(() => ({}));
  if (reply.status === 401 && path !== '/api/session') announce('signed-out');
  throw apiError(reply.status, message);
}

/** @returns {Promise<any>} the JSON document @throws an error with the status */
export async function call(method, path, body = undefined) {
  const reply = await send(method, path, body, null);
  return reply.status === 204 ? null : reply.json();
}

export async function signIn(token) {
  const { proof } = await call('POST', '/api/session', { token });
  localStorage.setItem(PROOF, proof);
}

export async function signOut() {
  await call('DELETE', '/api/session').catch(() => null);
  localStorage.removeItem(PROOF);
}

/**
 * Server-sent events. EventSource cannot send a header, so they are read by hand.
 *
 * @param {(name: string, data: any) => void} onEvent
 * @param {AbortSignal} signal
 */
export async function listen(onEvent, signal) {
  const reply = await send('GET', '/api/live', undefined, signal);
  const reader = reply.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '';
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const parts = (rest + value).split('\n\n');
    rest = parts.pop() ?? '';
    for (const part of parts) {
      const [, name = '', data = 'null'] = /^event: (\w+)\ndata: (.*)$/s.exec(part) ?? [];
      onEvent(name, JSON.parse(data));
    }
  }
}
