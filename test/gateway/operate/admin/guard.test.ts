/** Tests access to the admin API: by the token, by a session of the page, or from this machine, and by no web page. */
import { pino } from 'pino';
import t, { type Test } from 'tap';
import { MISTAKES_MAX, SESSION_MS, SESSIONS_MAX, Sessions } from '#gateway/operate/admin/sessions.ts';
import { startTestAdmin, type TestAdminOptions } from '#test/support/admin.ts';
import { policyFile, startTestGateway } from '#test/support/gateway.ts';
import { send as exchange } from '../../proxy/exchange.ts';

type Fields = Readonly<Record<string, string>>;

const TOKEN = 'a secret';
const BEARER = { authorization: `Bearer ${TOKEN}` };
const CLIENT = { subject: '192.0.2.7' };

async function start(t: Test, options: TestAdminOptions = {}) {
  const rows = [
    'name: one, route: GET /one, identifier: ip, limit: 1, window: 1d',
    'name: keys, route: GET /keys, identifier: api-key, limit: 1, window: 1d',
  ];
  const gateway = await startTestGateway(t, { policies: policyFile(...rows) });
  const told: string[] = [];
  const log = pino({}, { write: (line: string) => void told.push(line) });
  const { port, host } = new URL(await startTestAdmin(t, gateway, { ...options, log }));
  /** @param body text, or an object that is sent as JSON */
  const ask = async (request: string, headers: Fields = {}, body?: object | string) => {
    const [method = '', path = ''] = request.split(' ');
    const type = body === undefined ? {} : { 'content-type': 'application/json' };
    const reply = await exchange(Number(port), path, {
      method,
      headers: { host, ...type, ...headers },
      body: typeof body === 'object' ? JSON.stringify(body) : body,
      setHost: false,
    });
    const text = reply.body.toString();
    const cookie = reply.headers['set-cookie']?.[0] ?? '';
    return { ...reply, cookie, json: text.startsWith('{') ? JSON.parse(text) : {} };
  };
  const signIn = async (): Promise<Fields> => {
    const { cookie, json } = await ask('POST /api/session', {}, { token: TOKEN });
    return { cookie: cookie.split(';')[0] ?? '', 'x-floodgate-proof': String(json.proof) };
  };
  return { ask, signIn, host, told };
}

t.test('without a token: only for this machine, and not for web pages', async (t) => {
  const { ask, host } = await start(t);
  const inspect = async (headers: Fields) => ask('POST /api/inspect', headers, CLIENT);
  for (const [headers, status] of [
    [{}, 200],
    [{ host: 'localhost:1' }, 200],
    [{ origin: `http://${host}` }, 200],
    [{ host: 'evil.example' }, 403],
    [{ host: '127.0.0.1.evil.example' }, 403],
    [{ host: 'gateway:9090' }, 403],
    [{ origin: 'https://evil.example' }, 403],
    [{ 'sec-fetch-site': 'cross-site' }, 403],
    [{ 'content-type': 'text/plain' }, 415],
    [{ 'content-type': 'application/x-www-form-urlencoded' }, 415],
    [{ 'content-type': 'multipart/form-data; boundary=x' }, 415],
  ] as const)
    t.equal((await inspect(headers)).status, status, JSON.stringify(headers));
  t.match(await inspect({ host: 'evil.example' }), { json: { message: /localhost/ } });
  t.equal(
    (await inspect({ origin: 'https://evil.example' })).headers['access-control-allow-origin'],
    undefined,
  );
  t.equal((await ask('GET /api/live', { 'sec-fetch-site': 'cross-site' })).status, 403);
  t.match(await ask('GET /api/session'), { status: 200, json: { isNeeded: false, isSignedIn: false } });
  t.match(await ask('POST /api/session', {}, { token: 'x' }), { status: 409 });
  const open = await start(t, { isLoopback: false });
  const closed = { status: 403, json: { message: /set GATEWAY_ADMIN_TOKEN/ } };
  t.match(await open.ask('POST /api/inspect', {}, CLIENT), closed, 'on other addresses than loopback');
  t.equal((await open.ask('GET /healthz')).status, 200);
});

t.test('refuses a foreign host name that resolves to this address', async (t) => {
  const paths = ['/metrics', '/', '/page/main.js', '/readyz', '/nowhere'];
  const foreign = ['evil.example', 'evil.example:9090', '127.0.0.1.evil.example', 'localhost.evil.example'];
  const own = ['127.0.0.1:9090', '10.1.2.3', '[::1]:9090', '[2001:db8::1]', 'localhost', 'gateway:9090'];
  const { ask } = await start(t);
  for (const path of paths) {
    for (const host of foreign) t.equal((await ask(`GET ${path}`, { host })).status, 403, `${path} ${host}`);
    for (const host of own) t.not((await ask(`GET ${path}`, { host })).status, 403, `${path} ${host}`);
  }
  t.equal((await ask('GET /healthz', { host: 'evil.example' })).status, 200, 'it reveals nothing');
  const guarded = await start(t, { token: TOKEN });
  const host = 'gateway.example:9090';
  t.equal((await guarded.ask('GET /metrics', { host })).status, 401);
  for (const path of ['/metrics', '/', '/readyz'])
    t.equal(
      (await guarded.ask(`GET ${path}`, { host, ...BEARER })).status,
      200,
      'the token protects the data',
    );
});

t.test('with a token: it, or the cookie and the proof of a session together', async (t) => {
  const { ask, signIn, host } = await start(t, { token: TOKEN });
  const { cookie } = await ask('POST /api/session', {}, { token: TOKEN });
  t.match(cookie, /^floodgate_session=[\w-]{43}; Path=\/; Max-Age=28800; HttpOnly; SameSite=Strict$/);
  const [session, other] = [await signIn(), await signIn()];
  const { cookie: only = '', 'x-floodgate-proof': proof = '' } = session;
  const unban = async (headers: Fields) => ask('POST /api/unban', { ...session, ...headers }, CLIENT);
  for (const [headers, status] of [
    [{}, 401],
    [{ authorization: 'Bearer wrong' }, 401],
    [{ authorization: TOKEN }, 401],
    [BEARER, 200],
    [{ ...BEARER, origin: 'https://evil.example', host: 'admin.example' }, 200],
    [session, 200],
    [{ cookie: only }, 401],
    [{ 'x-floodgate-proof': proof }, 401],
    [{ ...other, 'x-floodgate-proof': proof }, 401],
  ] as const)
    t.equal((await ask('GET /api/top', headers)).status, status, Object.keys(headers).join());
  for (const [headers, status] of [
    [{ origin: `http://${host}`, 'sec-fetch-site': 'same-origin' }, 200],
    [{ origin: 'https://evil.example' }, 403],
    [{ origin: 'null' }, 403],
    [{ origin: `http://${host.replace(/\d+$/, '1')}` }, 403],
    [{ 'sec-fetch-site': 'cross-site' }, 403],
    [{ 'sec-fetch-site': 'same-site' }, 403],
    [{ host: 'evil.example', origin: `http://${host}` }, 403],
    [{ 'content-type': 'text/plain' }, 415],
  ] as const)
    t.equal((await unban(headers)).status, status, JSON.stringify(headers));
  t.equal((await ask('GET /metrics', session)).status, 401, 'metrics need the token');
  const signUp = async (headers: Fields) => ask('POST /api/session', headers, { token: TOKEN });
  t.equal((await signUp({ origin: 'https://evil.example' })).status, 403);
  const behindTls = await signUp({ host: 'admin.example', origin: 'https://admin.example' });
  t.match(behindTls.cookie, /; Secure$/, 'the cookie is Secure behind TLS');

  const state = { isNeeded: true, isSignedIn: true, endsAt: /Z$/ };
  t.match(await ask('GET /api/session', session), { json: state });
  const out = await ask('DELETE /api/session', session);
  t.match(out, { status: 204, cookie: /floodgate_session=;.*Max-Age=0/ });
  t.equal((await ask('GET /api/top', session)).status, 401);
  t.equal((await ask('GET /api/top', other)).status, 200, 'the other session stays');
  t.match(await ask('GET /api/session'), { json: { ...state, isSignedIn: false, endsAt: null } });
});

t.test('a session expires, and tokens cannot be guessed', async (t) => {
  let now = Date.now();
  const { ask, signIn } = await start(t, { token: TOKEN, clock: () => now });
  const session = await signIn();
  now += SESSION_MS - 1;
  t.equal((await ask('GET /api/top', session)).status, 200);
  now += 1;
  t.equal((await ask('GET /api/top', session)).status, 401);
  for (let i = 0; i < MISTAKES_MAX; i++)
    t.equal((await ask('POST /api/session', {}, { token: `guess ${i}` })).status, 401);
  const refused = await ask('POST /api/session', {}, { token: TOKEN });
  t.match(refused, { status: 429, json: { message: /try again in \d+ s/ } });
  now += 60_000;
  t.equal((await ask('POST /api/session', {}, { token: TOKEN })).status, 200);
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
  t.strictSame([0, 1, SESSIONS_MAX].map(isOpen), [false, true, true], 'the oldest session was ended');
  t.equal(sessions.of('floodgate_session=short', 'x'), null);
  for (let i = 0; i < 3000; i++) sessions.noteMistake(`address ${i}`);
  for (let i = 0; i < MISTAKES_MAX; i++) sessions.noteMistake('address 2999');
  t.ok(sessions.waitMs('address 2999') > 0);
  t.equal(sessions.waitMs('address 0'), 0);
});

t.test('errors for bad requests say what to do', async (t) => {
  const { ask, told } = await start(t);
  for (const [path, body, message] of [
    ['/api/inspect', '{', /JSON/],
    ['/api/inspect', '{}', /subject/],
    ['/api/inspect', '{"subject":1}', /string/],
    ['/api/inspect', '{"subject":"a","more":1}', /additional/],
    ['/api/inspect', '{"subject":"nowhere","kind":"address"}', /is not an address/],
    ['/api/inspect', '{"subject":"short","kind":"digest"}', /22 characters/],
    ['/api/inspect', '{"subject":"a","identifier":"other"}', /it has: api-key/],
    ['/api/ban', '{"subject":"192.0.2.7"}', /seconds/],
    ['/api/ban', '{"subject":"192.0.2.7","seconds":99999999}', /2592000/],
    ['/api/ban', '{"subject":"0.0.0.0","seconds":60}', /no client/],
    ['/api/ban', '{"subject":"::","seconds":60}', /no client/],
    ['/api/shadow', '{"policy":"one","seconds":99999999}', /604800/],
    ['/api/explain', '{"request":"GET"}', /METHOD PATH/],
    ['/api/explain', '{"request":"GET /","from":"x"}', /address/],
    ['/api/explain', '{"request":"GET /","headers":["x"]}', /name: value/],
  ] as const)
    t.match(await ask(`POST ${path}`, {}, body), { status: 400, json: { message } }, body);
  t.equal((await ask('POST /api/shadow', {}, { policy: 'nowhere', seconds: 60 })).status, 404);
  t.equal((await ask('POST /api/inspect', {}, `"${'x'.repeat(70_000)}"`)).status, 413);
  t.notMatch(told.join(''), /admin change/, 'nothing has changed');
  t.equal((await ask('POST /api/ban', {}, { ...CLIENT, seconds: 60 })).status, 200);
  t.match(told.join(''), /admin change/);
});
