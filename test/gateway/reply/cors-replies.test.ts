/** Tests that pages of the origins under `replies: cors` can read every reply that the gateway itself writes. */
import t from 'tap';
import { policyFile, startTestGateway } from '#test/support/gateway.ts';
import { freePort } from '#test/support/ports.ts';
import { sendRaw } from '#test/support/raw.ts';
import { until } from '#test/support/until.ts';
import { type Answer, send, values } from '../proxy/exchange.ts';

const APP = 'https://app.example.org';
const ADMIN = 'https://admin.example.org';
const OTHER = 'https://other.example';
const CORS = `replies:
  cors:
    - ${APP}
    - { origin: ${ADMIN}, credentials: true }
    - { origin: "*", route: GET /public/* }
`;
const LIMITED = `version: 1
identifiers:
  ip: { source: client-address }
  key: { source: [{ header: x-api-key }] }
${CORS}deny: [{ route: "* /closed" }, { route: "* /public/closed" }]
policies:
  - { name: all, route: "GET,PUT,OPTIONS *", identifier: ip, limit: 1, window: 366d }
  - { name: keys, route: "GET /keyed", identifier: key, limit: 9, window: 366d }
`;

/** The CORS headers of an answer, without those that expose headers. */
function granted({ rawHeaders }: Answer): readonly (readonly string[])[] {
  return ['access-control-allow-origin', 'access-control-allow-credentials', 'vary'].map((name) =>
    values(rawHeaders, name),
  );
}

const FOR_APP = [[APP], [], ['Origin']];
const FOR_ADMIN = [[ADMIN], ['true'], ['Origin']];
const FOR_NOBODY = [[], [], ['Origin']];
const FOR_ALL = [['*'], [], ['Origin']];
const ASKS = {
  'access-control-request-method': 'PUT',
  'access-control-request-headers': 'x-a, Authorization',
};

t.test('refusals name the origin of the page', async (t) => {
  const { port } = await startTestGateway(t, { policies: LIMITED });
  const ask = (path: string, headers: Record<string, string | string[]>, method = 'GET'): Promise<Answer> =>
    send(port, path, { method, headers });
  const first = await ask('/a', { origin: APP });
  t.equal(first.status, 200);
  t.strictSame(granted(first), [[], [], []], 'the application decides who may read its replies');
  t.match(first.headers['access-control-expose-headers'], /^x-ratelimit-limit, /);

  for (const [from, expected] of [
    [APP, FOR_APP],
    [ADMIN, FOR_ADMIN],
    [OTHER, FOR_NOBODY],
    ['null', FOR_NOBODY],
    [APP.toUpperCase(), FOR_NOBODY],
    [`${APP}:443`, FOR_NOBODY],
    [`${APP}.evil.example`, FOR_NOBODY],
    [APP.replace('https', 'http'), FOR_NOBODY],
    [`${APP}, ${APP}`, FOR_NOBODY],
  ] as const) {
    const denied = await ask('/a', { origin: from });
    t.equal(denied.status, 429);
    t.strictSame(granted(denied), expected, from);
    if (expected !== FOR_NOBODY)
      t.match(denied.headers['access-control-expose-headers'], /retry-after$/, 'Retry-After can be read');
  }
  t.strictSame(granted(await ask('/a', { origin: [APP, APP] })), FOR_NOBODY, 'two fields');
  t.strictSame(granted(await ask('/a', {})), FOR_NOBODY, 'no page');
  t.strictSame(granted(await ask('/public/a', { origin: OTHER })), FOR_ALL, 'by route');
  t.strictSame(granted(await ask('/public/a', { origin: ADMIN })), FOR_ADMIN, 'a named origin comes first');
  t.strictSame(granted(await ask('/public/a', { origin: OTHER }, 'PUT')), FOR_NOBODY, 'another method');

  const closed = await ask('/closed', { origin: ADMIN });
  t.equal(closed.status, 403, 'only client routes never get 403');
  t.strictSame(granted(closed), FOR_ADMIN);
  const malformed = await ask('/a%00', { origin: ADMIN });
  t.equal(malformed.status, 400);
  t.strictSame(granted(malformed), FOR_ADMIN, 'before the route is known');
  const ambiguous = await ask('/keyed', { origin: ADMIN, 'x-api-key': ['a', 'b'] });
  t.equal(ambiguous.status, 400);
  t.strictSame(granted(ambiguous), FOR_ADMIN);
  const widget = await ask('/api/v1/client/w', { origin: OTHER });
  t.equal(widget.status, 429);
  t.strictSame(granted(widget), FOR_ALL, 'client routes are for all pages');
  t.strictSame(granted(await ask('/api/v1/client/w', { origin: ADMIN })), FOR_ADMIN);

  const html = await ask('/a', { origin: APP, accept: 'text/html' });
  t.match(html.headers['content-type'], /html/);
  t.strictSame(values(html.rawHeaders, 'vary').join(', '), 'Accept, Origin');

  t.equal((await ask('/a', { origin: OTHER, ...ASKS }, 'OPTIONS')).status, 429, 'not listed');
  const read = { origin: OTHER, 'access-control-request-method': 'GET' };
  t.equal((await ask('/public/closed', read, 'OPTIONS')).status, 204, 'the method that is asked for counts');
  t.equal((await ask('/public/closed', { ...read, ...ASKS }, 'OPTIONS')).status, 403);
});

for (const parser of ['0', '1']) {
  const env = { GATEWAY_OWN_PARSER: parser };
  const policies = policyFile().replace('policies:', `${CORS}policies:`);

  t.test(`502, and its preflight: GATEWAY_OWN_PARSER=${parser}`, async (t) => {
    const { port } = await startTestGateway(t, {
      upstream: `http://127.0.0.1:${await freePort()}`,
      policies,
      env,
    });
    const headers = { origin: ADMIN };
    const failed = await send(port, '/a', { headers });
    t.equal(failed.status, 502);
    t.strictSame(granted(failed), FOR_ADMIN);
    const preflight = await send(port, '/a', { method: 'OPTIONS', headers: { ...headers, ...ASKS } });
    t.equal(preflight.status, 204);
    t.strictSame(granted(preflight), FOR_ADMIN);
  });

  t.test(`408: GATEWAY_OWN_PARSER=${parser}`, async (t) => {
    const { port, sample } = await startTestGateway(t, {
      policies,
      env: { ...env, GATEWAY_UPSTREAM_CONNECTIONS: '2', GATEWAY_WAITING: '4', GATEWAY_CLIENT_SHARE: '1' },
    });
    const upload = `POST /a HTTP/1.1\r\nHost: a\r\nOrigin: ${ADMIN}\r\nContent-Length: 100000\r\n\r\nx`;
    const slow = sendRaw(port, upload);
    await until(() => sample('floodgate_held', { bound: 'uploads' }) === 1);
    const next = sendRaw(port, upload, '127.0.0.2');
    t.teardown(() => next.socket.destroy());
    const reply = await slow.until(/\r\n\r\n/);
    slow.socket.destroy();
    t.match(reply, /^HTTP\/1\.1 408 /);
    t.match(reply, `Access-Control-Allow-Origin: ${ADMIN}\r\n`);
    t.match(reply, 'Access-Control-Allow-Credentials: true\r\n');
  });

  t.test(`before a request can be read: GATEWAY_OWN_PARSER=${parser}`, async (t) => {
    const { port } = await startTestGateway(t, { policies, env });
    const replyTo = async (text: string): Promise<string> => {
      const connection = sendRaw(port, text);
      const received = await connection.until(/\r\n\r\n/);
      connection.socket.destroy();
      return received;
    };
    for (const [status, request] of [
      [400, `GET /a b HTTP/1.1\r\nHost: a\r\nOrigin: ${ADMIN}\r\n\r\n`],
      [400, `GET /a HTTP/1.1\r\nHost: a\r\norigin:${ADMIN} \r\nbad line\r\n\r\n`],
      [431, `GET /a HTTP/1.1\r\nHost: a\r\nOrigin: ${ADMIN}\r\nX-A: ${'a'.repeat(70_000)}\r\n\r\n`],
      [431, `GET /a HTTP/1.1\r\nHost: a\r\nOrigin: ${ADMIN}\r\n${'X-A: 1\r\n'.repeat(200)}\r\n`],
      [405, `TRACE /a HTTP/1.1\r\nHost: a\r\nOrigin: ${ADMIN}\r\n\r\n`],
    ] as const) {
      const reply = await replyTo(request);
      t.match(reply, new RegExp(`^HTTP/1\\.1 ${status} `));
      t.match(reply, `Access-Control-Allow-Origin: ${ADMIN}\r\n`, request.slice(0, 60));
      t.match(reply, 'Access-Control-Allow-Credentials: true\r\n');
      t.match(reply, 'Vary: Origin\r\n');
      t.match(await replyTo(request.replace(ADMIN, OTHER)), 'Access-Control-Allow-Origin: *\r\n');
    }
  });

  t.test(`503 at the door: GATEWAY_OWN_PARSER=${parser}`, async (t) => {
    const { port, sample } = await startTestGateway(t, {
      policies,
      env: { ...env, GATEWAY_CONNECTIONS: '1', GATEWAY_CLIENT_SHARE: '1' },
    });
    const holding = sendRaw(port, '', '127.0.0.2');
    t.teardown(() => holding.socket.destroy());
    await until(() => sample('floodgate_held', { bound: 'connections' }) === 1);
    const refused = await send(port, '/a', { headers: { origin: ADMIN } });
    t.equal(refused.status, 503);
    t.strictSame(granted(refused), FOR_ADMIN);
    const silent = sendRaw(port, '');
    t.match(await silent.until(/\r\n\r\n/), 'Access-Control-Allow-Origin: *\r\n', 'without a request');
    silent.socket.destroy();
  });
}
