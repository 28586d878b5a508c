/** Tests access to the admin API, and the errors of refused requests. */
import t from 'tap';
import { startOperator } from '#test/support/operator.ts';
import { send } from '../../proxy/exchange.ts';

const JSON_TYPE = 'application/json';

async function post(url: string, body: string, headers: Record<string, string> = {}) {
  const { port, pathname } = new URL(url);
  const all = { 'content-type': JSON_TYPE, ...headers };
  const reply = await send(Number(port), pathname, { method: 'POST', body, headers: all });
  return { ...reply, message: String(JSON.parse(reply.body.toString()).message) };
}

t.test('without a token: only for this machine, and not for web pages', async (t) => {
  const { admin } = await startOperator(t);
  const inspect = `${admin}/api/inspect`;
  const body = JSON.stringify({ subject: '192.0.2.7' });
  t.equal((await post(inspect, body)).status, 200);
  t.equal((await post(inspect, body, { host: 'localhost:1' })).status, 200);
  t.match(await post(inspect, body, { host: 'evil.example' }), { status: 403, message: /localhost/ });
  t.equal((await post(inspect, body, { host: '127.0.0.1.evil.example' })).status, 403);
  for (const type of ['text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data; boundary=x'])
    t.match(await post(inspect, body, { 'content-type': type }), {
      status: 415,
      message: /application\/json/,
    });
  const reply = await post(inspect, body, { origin: 'https://evil.example' });
  t.equal(reply.headers['access-control-allow-origin'], undefined);
});

t.test('errors for bad requests say what to do', async (t) => {
  const { admin, ask, process } = await startOperator(t);
  const cases = [
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
    ['/api/explain', '{"request":"GET"}', /METHOD PATH/],
    ['/api/explain', '{"request":"GET /","from":"x"}', /address/],
    ['/api/explain', '{"request":"GET /","headers":["x"]}', /name: value/],
  ] as const;
  for (const [path, body, message] of cases)
    t.match(await post(admin + path, body), { status: 400, message }, body);
  t.equal((await post(`${admin}/api/inspect`, `"${'x'.repeat(70_000)}"`)).status, 413);
  t.match(await ask('ban', '0.0.0.0'), { code: 2, stderr: /no client/ });
  t.match(await ask('ban', '192.0.2.7', '--for', '1 year'), { code: 2, stderr: /--for/ });
  t.match(await ask('inspect'), { code: 2, stderr: /name one/ });
  t.notMatch(process.output(), /admin change/, 'nothing has changed');
});

/** Sends any Host field, or none. */
async function statusOf(url: string, headers: Record<string, string>): Promise<number> {
  const { port, pathname } = new URL(url);
  return (await send(Number(port), pathname, { headers, setHost: false })).status;
}

t.test('refuses a foreign host name that resolves to this address', async (t) => {
  const paths = ['/metrics', '/', '/page/main.js', '/readyz', '/nowhere'];
  const foreign = ['evil.example', 'evil.example:9090', '127.0.0.1.evil.example', 'localhost.evil.example'];
  const own = ['127.0.0.1:9090', '10.1.2.3', '[::1]:9090', '[2001:db8::1]', 'localhost', 'gateway:9090'];
  await t.test('without a token', async (t) => {
    const { admin } = await startOperator(t);
    for (const path of paths) {
      for (const host of foreign) t.equal(await statusOf(admin + path, { host }), 403, `${path} ${host}`);
      for (const host of own) t.not(await statusOf(admin + path, { host }), 403, `${path} ${host}`);
    }
    t.equal(await statusOf(`${admin}/healthz`, { host: 'evil.example' }), 200, 'it reveals nothing');
  });
  await t.test('with a token any host name is accepted, because the token protects the data', async (t) => {
    const { admin } = await startOperator(t, { GATEWAY_ADMIN_TOKEN: 'secret' });
    const host = 'gateway.example:9090';
    t.equal(await statusOf(`${admin}/metrics`, { host }), 401);
    t.equal(await statusOf(`${admin}/metrics`, { host, authorization: 'Bearer secret' }), 200);
    for (const path of ['/', '/readyz']) t.equal(await statusOf(admin + path, { host }), 200, path);
  });
});

t.test('without a token it is closed on other addresses than loopback', async (t) => {
  const { admin } = await startOperator(t, { GATEWAY_ADMIN_HOST: '0.0.0.0' });
  const reply = await post(`${admin}/api/inspect`, JSON.stringify({ subject: '192.0.2.7' }));
  t.match(reply, { status: 403, message: /set GATEWAY_ADMIN_TOKEN/ });
  t.equal((await fetch(`${admin}/healthz`)).status, 200);
});
