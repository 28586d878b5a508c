/** Tests signing in on the page, and that another web page cannot use the session. */
import t, { type Test } from 'tap';
import { MISTAKES_MAX, SESSION_MS, SESSIONS_MAX, Sessions } from '#gateway/operate/admin/sessions.ts';
import { startTestAdmin } from '#test/support/admin.ts';
import { policyFile, startTestGateway } from '#test/support/gateway.ts';
import { send as exchange } from '../../proxy/exchange.ts';

interface Reply {
  readonly status: number;
  readonly cookie: string;
  readonly body: Record<string, unknown>;
}

type Send = (method: string, path: string, headers?: Record<string, string>, body?: object) => Promise<Reply>;

async function start(t: Test, token: string | null, clock = Date.now): Promise<{ send: Send; host: string }> {
  const row = 'name: one, route: GET /one, identifier: ip, limit: 1, window: 1d';
  const gateway = await startTestGateway(t, { policies: policyFile(row) });
  const admin = await startTestAdmin(t, gateway, { token, clock });
  const send: Send = async (method, path, headers = {}, body = undefined) => {
    const type = body === undefined ? {} : { 'content-type': 'application/json' };
    const reply = await exchange(Number(new URL(admin).port), path, {
      method,
      headers: { ...type, ...headers },
      body: body === undefined ? undefined : JSON.stringify(body),
    });
    const text = reply.body.toString();
    return {
      status: reply.status,
      cookie: reply.headers['set-cookie']?.[0] ?? '',
      body: text.startsWith('{') ? JSON.parse(text) : {},
    };
  };
  return { send, host: admin.replace('http://', '') };
}

async function signIn(send: Send): Promise<Record<string, string>> {
  const { status, cookie, body } = await send('POST', '/api/session', {}, { token: 'a secret' });
  if (status !== 200) throw new Error(`signing in got ${status}`);
  return { cookie: cookie.split(';')[0] ?? '', 'x-floodgate-proof': String(body.proof) };
}

const UNBAN = { subject: '192.0.2.7' };

t.test('cookie and CSRF proof give access together, and neither alone', async (t) => {
  const { send } = await start(t, 'a secret');
  t.equal((await send('GET', '/api/top')).status, 401);
  const { cookie } = await send('POST', '/api/session', {}, { token: 'a secret' });
  t.match(cookie, /^floodgate_session=[\w-]{43}; Path=\/; Max-Age=28800; HttpOnly; SameSite=Strict$/);
  const session = await signIn(send);
  t.equal((await send('GET', '/api/top', session)).status, 200);
  t.equal((await send('POST', '/api/unban', session, UNBAN)).status, 200);
  const { cookie: only = '', 'x-floodgate-proof': proof = '' } = session;
  t.equal((await send('GET', '/api/top', { cookie: only })).status, 401, 'the cookie alone is not enough');
  t.equal((await send('GET', '/api/top', { 'x-floodgate-proof': proof })).status, 401);
  const other = await signIn(send);
  t.equal((await send('GET', '/api/top', { ...other, 'x-floodgate-proof': proof })).status, 401);
  t.equal((await send('GET', '/metrics', session)).status, 401, 'metrics need the token');

  t.match(await send('GET', '/api/session', session), {
    body: { isNeeded: true, isSignedIn: true, endsAt: /Z$/ },
  });
  const out = await send('DELETE', '/api/session', session);
  t.match(out, { status: 204, cookie: /floodgate_session=;.*Max-Age=0/ });
  t.equal((await send('GET', '/api/top', session)).status, 401);
  t.equal((await send('GET', '/api/top', other)).status, 200, 'the other session stays');
  t.match(await send('GET', '/api/session'), { body: { isNeeded: true, isSignedIn: false, endsAt: null } });
});

t.test('a page of another origin cannot use it, nor a foreign name that resolves here', async (t) => {
  const { send, host } = await start(t, 'a secret');
  const session = await signIn(send);
  const unban = (headers: Record<string, string>) =>
    send('POST', '/api/unban', { ...session, ...headers }, UNBAN);
  t.equal((await unban({ origin: `http://${host}`, 'sec-fetch-site': 'same-origin' })).status, 200);
  t.match(await unban({ origin: 'https://evil.example' }), {
    status: 403,
    body: { message: /another origin/ },
  });
  t.equal((await unban({ origin: 'null' })).status, 403);
  t.equal((await unban({ origin: `http://${host.replace(/\d+$/, '1')}` })).status, 403, 'another port');
  t.equal((await unban({ 'sec-fetch-site': 'cross-site' })).status, 403);
  t.equal((await unban({ 'sec-fetch-site': 'same-site' })).status, 403);
  t.equal((await unban({ host: 'evil.example', origin: `http://${host}` })).status, 403);
  t.equal((await unban({ 'content-type': 'text/plain' })).status, 415, 'a form could send this type');
  const login = (headers: Record<string, string>) =>
    send('POST', '/api/session', headers, { token: 'a secret' });
  t.equal((await login({ origin: 'https://evil.example' })).status, 403);
  t.match(
    (await login({ host: 'admin.example', origin: 'https://admin.example' })).cookie,
    /; Secure$/,
    'the cookie is Secure behind TLS',
  );
  const program = { authorization: 'Bearer a secret', origin: 'https://evil.example' };
  t.equal(
    (await send('GET', '/api/top', program)).status,
    200,
    'a program with the token needs no CSRF proof',
  );
});

t.test('without a token nobody can sign in, and other origins are refused', async (t) => {
  const { send, host } = await start(t, null);
  t.match(await send('GET', '/api/session'), { status: 200, body: { isNeeded: false, isSignedIn: false } });
  t.match(await send('POST', '/api/session', {}, { token: 'x' }), { status: 409 });
  t.equal((await send('POST', '/api/unban', { origin: `http://${host}` }, UNBAN)).status, 200);
  t.equal((await send('POST', '/api/unban', { origin: 'http://evil.example' }, UNBAN)).status, 403);
  t.equal((await send('GET', '/api/live', { 'sec-fetch-site': 'cross-site' })).status, 403);
  t.equal((await send('GET', '/api/top', { host: 'evil.example' })).status, 403);
});

t.test('a session expires, and tokens cannot be guessed', async (t) => {
  let now = Date.now();
  const { send } = await start(t, 'a secret', () => now);
  const session = await signIn(send);
  now += SESSION_MS - 1;
  t.equal((await send('GET', '/api/top', session)).status, 200);
  now += 1;
  t.equal((await send('GET', '/api/top', session)).status, 401);
  for (let i = 0; i < MISTAKES_MAX; i++)
    t.equal((await send('POST', '/api/session', {}, { token: `guess ${i}` })).status, 401);
  t.match(await send('POST', '/api/session', {}, { token: 'a secret' }), {
    status: 429,
    body: { message: /try again in \d+ s/ },
  });
  now += 60_000;
  t.equal((await send('POST', '/api/session', {}, { token: 'a secret' })).status, 200);
});

t.test('the number of sessions and of remembered failures is bounded', async (t) => {
  let secrets = 0;
  const newSecret = (): string => String(secrets++).padStart(43, 'x');
  const sessions = new Sessions({ clock: () => 0, newSecret });
  const all = Array.from({ length: SESSIONS_MAX + 1 }, () => sessions.begin());
  const isOpen = (at: number): boolean => {
    const { cookie = '', proof = '' } = all[at] ?? {};
    return sessions.of(`other=1; floodgate_session=${cookie}`, proof) !== null;
  };
  t.notOk(isOpen(0), 'the oldest session was ended');
  t.ok(isOpen(1));
  t.ok(isOpen(SESSIONS_MAX));
  t.equal(sessions.of('floodgate_session=short', 'x'), null);
  for (let i = 0; i < 3000; i++) sessions.noteMistake(`address ${i}`);
  for (let i = 0; i < MISTAKES_MAX; i++) sessions.noteMistake('address 2999');
  t.ok(sessions.waitMs('address 2999') > 0);
  t.equal(sessions.waitMs('address 0'), 0);
});
