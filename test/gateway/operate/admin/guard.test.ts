/** Tests access to the admin API: by the token, by a session of the page, or from this machine, and by no web page. */
import { join } from 'node:path';
import { pino } from 'pino';
import t, { type Test } from 'tap';
import { MISTAKES_MAX, SESSION_MS, SESSIONS_MAX, Sessions } from '#gateway/operate/admin/sessions.ts';
import { startTestAdmin, type TestAdminOptions } from '#test/support/admin.ts';
import { arrowCases } from '#test/support/arrow-cases.ts';
import { policyFile, startTestGateway } from '#test/support/gateway.ts';
import { send as exchange } from '../../proxy/exchange.ts';

type Fields = Readonly<Record<string, string>>;

const TOKEN = 'a secret';
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

const OPTIONS: Readonly<Record<string, TestAdminOptions>> = {
  'Without a token on other addresses than loopback': { isLoopback: false },
  'With a token: it, or the cookie and the proof of a session together': { token: TOKEN },
};

for (const { heading, cases } of arrowCases(join(import.meta.dirname, 'guard.md')))
  t.test(heading, async (t) => {
    const options = OPTIONS[heading] ?? {};
    const { ask, signIn, host, told } = await start(t, options);
    const names: Record<string, string | undefined> = { host };
    if (options.token !== undefined) {
      const { cookie, 'x-floodgate-proof': proof } = await signIn();
      Object.assign(names, { cookie, proof, other: (await signIn()).cookie });
    }
    for (const [request = '', fields = '', status, message = ''] of cases) {
      const [method = '', path = '', ...rest] = request.split(' ');
      const filled = fields.replace(/\$(\w+)/g, (_, name: string) => String(names[name]));
      const headers = filled === '' ? [] : filled.split(' | ').map((field) => field.split(/: (.*)/s, 2));
      const body = rest.join(' ') || (method === 'POST' ? CLIENT : undefined);
      const reply = await ask(`${method} ${path}`, Object.fromEntries(headers), body);
      t.equal(reply.status, Number(status), `${request} ${fields}`);
      t.ok(reply.body.includes(message), `${request}: ${reply.body}`);
      t.equal(reply.headers['access-control-allow-origin'], undefined);
    }
    t.notMatch(told.join(''), /"change":"(?:ban|shadow)/, 'no client has been banned');
  });

t.test('what changes is told in the log, and what is too long is refused', async (t) => {
  const { ask, told } = await start(t);
  t.equal((await ask('POST /api/inspect', {}, `"${'x'.repeat(70_000)}"`)).status, 413);
  t.notMatch(told.join(''), /admin change/);
  t.equal((await ask('POST /api/ban', {}, { ...CLIENT, seconds: 60 })).status, 200);
  t.match(told.join(''), /admin change/);
});

t.test('a session has its own cookie, and ends with it', async (t) => {
  const { ask, signIn } = await start(t, { token: TOKEN });
  const signUp = async (headers: Fields = {}) => ask('POST /api/session', headers, { token: TOKEN });
  const form = /^floodgate_session=[\w-]{43}; Path=\/; Max-Age=28800; HttpOnly; SameSite=Strict$/;
  t.match((await signUp()).cookie, form);
  const behindTls = await signUp({ host: 'admin.example', origin: 'https://admin.example' });
  t.match(behindTls.cookie, /; Secure$/, 'the cookie is Secure behind TLS');
  const [session, other] = [await signIn(), await signIn()];
  const out = await ask('DELETE /api/session', session);
  t.match(out, { status: 204, cookie: /floodgate_session=;.*Max-Age=0/ });
  t.equal((await ask('GET /api/top', session)).status, 401);
  t.equal((await ask('GET /api/top', other)).status, 200, 'the other session stays');
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
