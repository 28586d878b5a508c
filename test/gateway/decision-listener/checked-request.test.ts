import t, { type Test } from 'tap';
import { Digester } from '#gateway/identity/digest.ts';
import { probeToken } from '#gateway/request/probe.ts';
import { BEHIND_PROXY, policyFile, startTestGateway, type TestGateway } from '#test/support/gateway.ts';
import { freePort } from '#test/support/ports.ts';
import { sendRaw } from '#test/support/raw.ts';
import { type Answer, send } from '../proxy/exchange.ts';

const ROWS = [
  'name: ip, route: "* /ip/*", identifier: ip, limit: 3, window: 366d',
  'name: keys, route: "* /keys/*", identifier: api-key, limit: 10, window: 366d',
  'name: client, route: "* /api/v1/client/*", identifier: ip, limit: 1, window: 366d',
  'name: named, route: "* /named/{id}", identifier: path.id, limit: 10, window: 366d',
];

interface Asked extends TestGateway {
  readonly decisionPort: number;
  /** Sends a request in the form of Traefik and Caddy. */
  ask(method: string, uri: string, from: string, headers?: Record<string, string>): Promise<Answer>;
}

async function startAsked(
  t: Test,
  env: Record<string, string> = {},
  policies = policyFile(...ROWS),
): Promise<Asked> {
  const decisionPort = await freePort();
  const gateway = await startTestGateway(t, {
    policies,
    env: { GATEWAY_DECISION_PORT: String(decisionPort), ...BEHIND_PROXY, ...env },
  });
  return {
    ...gateway,
    decisionPort,
    ask: (method, uri, from, headers = {}) =>
      send(decisionPort, '/forward-auth', { headers: { ...headers, ...question(method, uri, from) } }),
  };
}

function question(method: string, uri: string, from: string): Record<string, string> {
  return { 'x-forwarded-method': method, 'x-forwarded-uri': uri, 'x-forwarded-for': from };
}

t.test('answers a probe of doctor with what the gateway received, and charges nobody', async (t) => {
  const { ask, decisionPort, gateway } = await startAsked(t);
  const token = probeToken(new Digester(await gateway.control.salt()), Date.now());
  const probe = { 'x-gateway-probe': token };
  const seen = { isAsked: true, isPeerTrusted: true, forwardedCount: 1, identity: /^[\w-]{22}$/ };
  for (let i = 0; i < 4; i++) {
    const { status, body } = await ask('GET', '/ip/a', '192.0.2.1', probe);
    t.equal(status, 403);
    t.match(JSON.parse(body.toString()), seen);
  }
  const headers = { ...question('GET', '/ip/a', '192.0.2.1'), ...probe };
  const nginx = await send(decisionPort, '/auth-request', { headers });
  t.match(nginx, { status: 403, headers: { 'x-gateway-status': '403' } });
  t.match(JSON.parse(String(nginx.headers['x-gateway-body'])), seen);
  t.match(await ask('GET', '/ip/a', '192.0.2.1', { 'x-gateway-probe': 'x' }), {
    status: 200,
    headers: { 'x-ratelimit-remaining': '2' },
  });
});

t.test('has the same counters as the gateway in front of an application', async (t) => {
  const { ask, port } = await startAsked(t);
  const first = await ask('POST', '/ip/a?b', '192.0.2.1');
  t.match(first, { status: 200, headers: { 'x-ratelimit-limit': '3', 'x-ratelimit-remaining': '2' } });
  t.match(first.headers.ratelimit, /^"ip";r=2;t=\d+$/);
  t.equal(first.body.length, 0);
  const through = await send(port, '/ip/b', { headers: { 'x-forwarded-for': '192.0.2.1' } });
  t.match(through, { status: 200, headers: { 'x-ratelimit-remaining': '1' } });
  t.match(await ask('GET', '/ip/c', '192.0.2.1'), { status: 200, headers: { 'x-ratelimit-remaining': '0' } });
  t.match(await ask('GET', '/ip/c', '192.0.2.1'), { status: 429 });
  t.equal((await send(port, '/ip/c', { headers: { 'x-forwarded-for': '192.0.2.1' } })).status, 429);

  await ask('POST', '/api/v1/client/x/responses', '192.0.2.1');
  const widget = await ask('POST', '/api/v1/client/x/responses', '192.0.2.1');
  t.match(widget, { status: 429, headers: { 'access-control-allow-origin': '*' } });
});

t.test('400: a field that the proxy does not send, never 200', async (t) => {
  const { decisionPort, sample, log } = await startAsked(t);
  const whole = question('GET', '/ip/a', '192.0.2.1');
  const refused = async (path: string, headers: Record<string, string>): Promise<string> => {
    const { status, body } = await send(decisionPort, path, { headers });
    return `${status} ${JSON.parse(body.toString()).message}`;
  };
  for (const path of ['/forward-auth', '/auth-request']) {
    for (const name of Object.keys(whole)) {
      const { [name]: _, ...rest } = whole;
      t.match(await refused(path, rest), new RegExp(`^400 the proxy sent no ${name}:`, 'i'), path);
      t.match(
        await refused(path, { ...rest, [name]: '' }),
        new RegExp(`^400 the proxy sent no ${name}:`, 'i'),
      );
    }
  }
  t.match(await refused('/ext-authz/free', {}), /^400 the proxy sent no X-Forwarded-For/);
  for (const path of ['/', '/ip/a', '/forward-auth/x', '/ext-authz'])
    t.match(await refused(path, whole), /^400 use \/forward-auth/, path);
  const star = sendRaw(decisionPort, 'OPTIONS * HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n');
  t.match(await star.ended(), /^HTTP\/1\.1 400 /);
  const told = log.filter(({ msg }) => /sent an authorization request/.test(String(msg)));
  t.equal(told.length, 1, 'the log has one warning a minute');
  t.match(told[0], { reason: /the proxy sent no/ });
  t.equal(sample('floodgate_requests_total', { outcome: 'malformed' }), 18);
});

t.test('400 for the client of a malformed request, and the proxy keeps its connection', async (t) => {
  const { decisionPort } = await startAsked(t);
  const lines = (uri: string, path = '/forward-auth'): string =>
    `GET ${path} HTTP/1.1\r\nHost: a\r\nX-Forwarded-Method: GET\r\nX-Forwarded-Uri: ${uri}\r\nX-Forwarded-For: 192.0.2.1\r\n\r\n`;
  const { until, socket } = sendRaw(decisionPort, lines('/ip/%00'));
  t.match(await until(/encoded control character/), /^HTTP\/1\.1 400 /);
  socket.write(lines('/ip/a%00b', '/auth-request'));
  t.match(await until(/x-gateway-status: 400/), 'HTTP/1.1 403 ');
  socket.write(lines('/elsewhere'));
  t.match(await until(/HTTP\/1\.1 200 /), 'HTTP/1.1 200 ');
  socket.destroy();
});

t.test('400: a method that is long, or not in upper case', async (t) => {
  const { ask, decisionPort, log, sample } = await startAsked(
    t,
    {},
    policyFile('name: login, route: POST /login, identifier: ip, limit: 1, window: 366d'),
  );
  for (const method of ['post', 'Post', 'get', 'p0st', 'POST1']) {
    const { status, body } = await ask(method, '/login', '192.0.2.1');
    t.equal(status, 400, method);
    t.match(JSON.parse(body.toString()).message, `the method "${method}" is not in upper case`);
    const headers = question(method, '/login', '192.0.2.1');
    const forbidden = await send(decisionPort, '/auth-request', { headers });
    t.match(forbidden, { status: 403, headers: { 'x-gateway-status': '400' } }, method);
    const told = await send(decisionPort, '/replied', { headers: { ...headers, 'x-reply-status': '200' } });
    t.equal(told.status, 400);
  }
  for (const method of ['POST', 'M-SEARCH', 'PURGE', 'FOO'])
    t.equal((await ask(method, '/login', '192.0.2.1')).status, 200, method);
  t.equal((await ask('POST', '/login', '192.0.2.1')).status, 429);
  t.equal((await ask('M'.repeat(33), '/login', '192.0.2.1')).status, 400);
  t.notOk(
    log.some(({ msg }) => /sent an authorization request/.test(String(msg))),
    'the proxy is not at fault for the method, so there is no warning',
  );
  t.equal(sample('floodgate_requests_total', { outcome: 'malformed' }), 16);
});

t.test('auth-request: 403 for NGINX, and the client’s reply in header fields', async (t) => {
  const { ask, decisionPort } = await startAsked(t);
  const headers = question('GET', '/ip/a', '192.0.2.1');
  for (let i = 0; i < 3; i++) t.equal((await send(decisionPort, '/auth-request', { headers })).status, 200);
  const before = await ask('GET', '/ip/a', '192.0.2.1');
  const { status, headers: fields, body } = await send(decisionPort, '/auth-request', { headers });
  t.equal(status, 403);
  t.equal(body.length, 0);
  t.match(fields, { 'x-gateway-status': '429', 'x-gateway-ratelimited': 'true', 'x-gateway-decision': /./ });
  const problem = JSON.parse(String(fields['x-gateway-body']));
  t.equal(problem.decision, fields['x-gateway-decision']);
  const after = await ask('GET', '/ip/a', '192.0.2.1');
  t.strictSame(Object.keys(problem), Object.keys(JSON.parse(after.body.toString())));
  // A second may pass between two requests.
  const [most = 0, seconds = 0, least = 0] = [before.headers, fields, after.headers].map((one) =>
    Number(one['retry-after']),
  );
  t.ok(most >= seconds && seconds >= least, `${most} >= ${seconds} >= ${least}`);
});

t.test('200: an authorization request with an upgrade or with a body', async (t) => {
  const { ask, decisionPort } = await startAsked(t);
  const websocket = { connection: 'Upgrade', upgrade: 'websocket', 'sec-websocket-version': '13' };
  t.match(await ask('GET', '/ip/socket', '192.0.2.1', websocket), {
    status: 200,
    headers: { connection: 'keep-alive' },
  });
  const headers = { ...question('POST', '/ip/a', '192.0.2.1'), expect: '100-continue' };
  t.equal((await send(decisionPort, '/forward-auth', { method: 'POST', headers, body: 'x' })).status, 200);
});

t.test('431: an authorization request larger than proxies accept', async (t) => {
  const { ask } = await startAsked(t);
  t.equal((await ask('GET', '/ip/a', '192.0.2.1', { cookie: 'a'.repeat(40_000) })).status, 200);
  t.equal((await ask('GET', '/ip/a', '192.0.2.1', { cookie: 'a'.repeat(70_000) })).status, 431);
  const many = Object.fromEntries(Array.from({ length: 130 }, (_, i) => [`x-${i}`, 'a']));
  t.equal((await ask('GET', '/ip/a', '192.0.2.1', many)).status, 431);
});

t.test('refuses to start with policies that an authorization request cannot decide', async (t) => {
  const unseen = 'which the gateway cannot see on GATEWAY_DECISION_PORT';
  const window = 'route: "* /odd/*", identifier: ip, limit: 9, window: 1m';
  const reply = 'odd depends on the length of replies';
  const cases: Readonly<Record<string, string>> = {
    'route: "* /odd/*", identifier: ip, concurrency: 2': `odd counts requests in flight, so it depends on the end of replies, ${unseen}; remove it`,
    [`${window}, count: failure`]: 'odd has "count: failure", so it depends on the status of replies',
    [`${window}, count: success`]: 'odd has "count: success"',
    [`${window}, cost: body-bytes`]: 'odd depends on the length of bodies',
    'route: POST /login, identifier: { body: email }, limit: 2, window: 1m': `odd counts a field of bodies, ${unseen}`,
    [`${window}, distinct: { body: email }`]: `odd counts a field of bodies, ${unseen}`,
    [`${window}, cost: { replyHeader: X-Tokens, reserve: 5 }`]: `odd has a cost that the header x-tokens of replies reports, ${unseen}; write cost: 5 to charge the reserve, or use it`,
    [`${window}, cost: reply-bytes`]: `${reply}, ${unseen}; remove it`,
    [`${window}, cost: { reply-bytes: 5 }`]: `${reply}, ${unseen}; write cost: 5 to charge the reserve, or use it`,
  };
  for (const [text, message] of Object.entries(cases)) {
    const policies = policyFile(`name: odd, ${text}`);
    await t.rejects(startAsked(t, {}, policies), { name: 'PolicyFileError', message }, text);
  }
  const costly =
    'name: odd, route: "* /odd/*", identifier: ip, limit: 5, window: 366d, cost: { header: x-units }';
  const { ask } = await startAsked(t, {}, policyFile(costly));
  t.match(await ask('GET', '/odd/a', '192.0.2.1', { 'x-units': '4' }), {
    headers: { 'x-ratelimit-remaining': '1' },
  });
});
