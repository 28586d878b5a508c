/** The admin API, as this page asks it. The cookie of the session goes along by itself; its proof is kept here. */

const PROOF = 'floodgate-proof';

export class ApiError extends Error {
  /** @param {number} status 0: nobody answered @param {string} message */
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

let onSignedOut = () => {};

export function whenSignedOut(handler) {
  onSignedOut = handler;
}

function headers(body) {
  const proof = localStorage.getItem(PROOF);
  return {
    ...(proof === null ? {} : { 'x-floodgate-proof': proof }),
    ...(body === undefined ? {} : { 'content-type': 'application/json' }),
  };
}

async function send(method, path, body, signal) {
  const reply = await fetch(path, {
    method,
    headers: headers(body),
    body: body === undefined ? null : JSON.stringify(body),
    signal,
  }).catch((error) => {
    throw new ApiError(0, error.name === 'AbortError' ? 'stopped' : 'the gateway does not answer');
  });
  if (reply.ok) return reply;
  const { message = `the gateway answered ${reply.status}` } = await reply.json().catch(() => ({}));
  if (reply.status === 401 && path !== '/api/session') onSignedOut();
  throw new ApiError(reply.status, message);
}

/** @returns {Promise<any>} the JSON document @throws {ApiError} */
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
