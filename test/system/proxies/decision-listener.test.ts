/** NGINX and Caddy, for real, with the files of the examples: what their clients see. */

import { createServer, request } from 'node:http';
import t, { type Test } from 'tap';
import { send, values } from '#test/gateway/proxy/exchange.ts';
import { askingProxyNames, startAskingProxy } from '#test/support/asking-proxies.ts';
import { policyFile, startTestGateway, startUpstream, type TestGateway } from '#test/support/gateway.ts';
import { listen } from '#test/support/listen.ts';
import { freePort } from '#test/support/ports.ts';
import { startRedis } from '#test/support/redis.ts';
import { until } from '#test/support/until.ts';
import { insideLongWindow } from '#test/support/window.ts';

const WINDOW = 'window: 366d';
const ROWS = [
  `name: read, route: "GET /read/*", identifier: ip, limit: 3, ${WINDOW}`,
  `name: write, route: "POST /write/*", identifier: ip, limit: 2, ${WINDOW}`,
  `name: client, route: "* /api/v1/client/*", identifier: ip, limit: 1, ${WINDOW}`,
  `name: keys, route: "* /keys/*", identifier: api-key, limit: 3, ${WINDOW}`,
  `name: some, route: "* /some/*", identifier: api-key, limit: 10, ${WINDOW}`,
  `name: many, route: "* /many/*", identifier: ip, limit: 50, ${WINDOW}`,
  `name: captcha, route: "* /marked/*", identifier: ip, limit: 1, mode: mark, ${WINDOW}`,
  `name: both, route: "* /marked/both", identifier: ip, limit: 9, ${WINDOW}`,
];

async function startGateway(t: Test, env: Record<string, string> = {}, extra = '') {
  const decision = await freePort();
  const gateway = await startTestGateway(t, {
    upstream: 'http://127.0.0.1:9',
    policies: `${policyFile(...ROWS)}\n${extra}`,
    env: { GATEWAY_DECISION_PORT: String(decision), GATEWAY_TRUSTED_PROXIES: 'loopback', ...env },
  });
  return { ...gateway, decision };
}

for (const name of askingProxyNames) {
  t.test(name, async (t) => {
    const application = await startUpstream(t);
    const cors = 'replies: { cors: [{ origin: https://app.example.org, credentials: true }] }';
    const { decision } = await startGateway(t, {}, cors);
    const { port, errors } = await startAskingProxy(t, name, { decision, application: application.port });

    const first = await send(port, '/read/a%20b?c=d', { headers: { 'x-forwarded-for': '203.0.113.9' } });
    t.equal(first.status, 200, errors());
    t.match(JSON.parse(first.body.toString()), { method: 'GET', url: '/read/a%20b?c=d' });
    t.match(first.headers, { 'x-ratelimit-limit': '3', 'x-ratelimit-remaining': '2' });
    t.match(first.headers, { 'ratelimit-policy': /^"read";q=3;w=\d+$/, ratelimit: /^"read";r=2;t=\d+$/ });
    await send(port, '/read/a');
    await send(port, '/read//../read/a', { method: 'HEAD' });
    const denied = await send(port, '/read/a', { headers: { 'x-forwarded-for': '203.0.113.10' } });
    t.equal(denied.status, 429, 'forged fields are ignored');
    const problem = JSON.parse(denied.body.toString());
    t.match(problem, { code: 'gateway_rate_limited', message: /policy read allows 3/, details: {} });
    t.match(denied.headers, {
      'content-type': 'application/problem+json',
      'cache-control': 'no-store',
      'x-gateway-ratelimited': 'true',
      'x-gateway-decision': problem.decision,
      'retry-after': /^[1-9]\d*$/,
      'x-ratelimit-limit': '3',
      'x-ratelimit-remaining': '0',
    });
    const browser = { accept: 'text/html,application/xhtml+xml,*/*;q=0.8' };
    for (const [path, status] of [
      ['/read/a', 429],
      ['/read/a%2500b', 400],
    ] as const) {
      const page = await send(port, path, { headers: browser });
      t.equal(page.status, status, errors());
      const isPage = name === 'caddy';
      t.equal(
        /^text\/html/.test(String(page.headers['content-type'])),
        isPage,
        'a page only where the proxy passes the body on',
      );
      t.match(page.body.toString(), isPage ? /^<!doctype html>/ : /^\{/);
    }
    t.match(await send(port, '/read/a', { method: 'HEAD' }), { status: 429, body: { length: 0 } });

    const post = { method: 'POST', body: 'x'.repeat(100_000) };
    const written = await send(port, '/write/a', post);
    t.equal(JSON.parse(written.body.toString()).body.length, 100_000, 'the application gets the body');
    await send(port, '/write/a', post);
    t.equal((await send(port, '/write/a', post)).status, 429);
    t.equal((await send(port, '/write/a')).status, 200, 'another method is not counted');

    const uncounted = await send(port, '/elsewhere');
    t.equal(uncounted.status, 200);
    t.notOk('x-ratelimit-limit' in uncounted.headers);

    for (const [path, over] of [
      ['/marked/a', []],
      ['/marked/a', ['captcha']],
      ['/marked/both', ['captcha']],
      ['/elsewhere', []],
    ] as const) {
      const passed = await send(port, path);
      t.equal(passed.headers['x-ratelimit-limit'], path === '/marked/both' ? '9' : undefined);
      const { headers } = JSON.parse(passed.body.toString());
      t.strictSame(values(headers, 'x-gateway-over'), over, `${path}: the application gets the marks`);
    }
    for (const path of ['/marked/a', '/elsewhere'])
      t.equal((await send(port, path, { headers: { 'x-gateway-over': 'other' } })).status, 400, 'forged');

    await send(port, '/api/v1/client/x');
    t.match(await send(port, '/api/v1/client/x'), {
      status: 429,
      headers: { 'access-control-allow-origin': '*', 'access-control-expose-headers': /retry-after/ },
    });
    t.match(await send(port, '/read/a', { headers: { origin: 'https://app.example.org' } }), {
      status: 429,
      headers: {
        'access-control-allow-origin': 'https://app.example.org',
        'access-control-allow-credentials': 'true',
        'access-control-expose-headers': /retry-after/,
        vary: 'Origin',
      },
    });
    for (let i = 0; i < 3; i++) await send(port, '/keys/a', { headers: { 'x-api-key': 'k' } });
    t.equal((await send(port, '/keys/a', { headers: { 'x-api-key': 'k' } })).status, 429, 'keys are counted');
    const malformed = await send(port, '/read/a%2500b');
    t.match(malformed, { status: 400, headers: { 'content-type': 'application/problem+json' } });
    t.match(JSON.parse(malformed.body.toString()), { message: /control character that is encoded twice/ });
    const forged = { 'x-forwarded-method': 'GET', 'x-forwarded-uri': '/elsewhere' };
    t.equal((await send(port, '/read/a', { headers: forged })).status, 429, 'forged fields are ignored');
  });

  t.test(`${name}: 403 from the deny list, and a refusal without a gateway`, async (t) => {
    const application = await startUpstream(t);
    const { decision, gateway } = await startGateway(
      t,
      {},
      'deny: [{ address: 127.0.0.1, status: 403, reason: "écrivez-nous" }]',
    );
    const { port } = await startAskingProxy(t, name, { decision, application: application.port });
    const listed = await send(port, '/elsewhere');
    t.equal(listed.status, 403);
    t.match(JSON.parse(listed.body.toString()), { code: 'gateway_forbidden', message: /écrivez-nous/ });
    await gateway.close();
    const { status } = await send(port, '/elsewhere');
    t.ok([500, 502, 503].includes(status), `refused, with ${status}`);
  });
}

t.test('nginx can be told to let requests pass without a gateway', async (t) => {
  const application = await startUpstream(t);
  const to = { decision: await freePort(), application: application.port };
  const { port } = await startAskingProxy(t, 'nginx', to, (text) =>
    text.replace('proxy_read_timeout 5s;', 'proxy_read_timeout 5s;\nerror_page 502 504 = @floodgate_away;'),
  );
  t.equal((await send(port, '/elsewhere')).status, 200);
});

t.test('nginx tells what became of requests: keys that work count on their own', async (t) => {
  const application = await startUpstream(t, (req, res) => {
    res.writeHead(String(req.headers['x-api-key']).startsWith('good') ? 200 : 401).end();
  });
  const { decision } = await startGateway(t);
  // Between the two, to see when the gateway has been told.
  let told = 0;
  const relay = createServer((req, res) => {
    const { method, url: path, headers } = req;
    const call = request({ host: '127.0.0.1', port: decision, method, path, headers }, (reply) => {
      res.writeHead(reply.statusCode ?? 0, reply.headers);
      reply.pipe(res).on('finish', () => {
        if (path === '/replied') told++;
      });
    });
    req.pipe(call);
  });
  const to = { decision: await listen(t, relay), application: application.port };
  const { port } = await startAskingProxy(t, 'nginx', to);
  let sent = 0;
  const statuses = async (key: string, times: number): Promise<number[]> => {
    const all: number[] = [];
    for (let i = 0; i < times; i++) {
      const { status } = await send(port, '/some/a', { headers: { 'x-api-key': key } });
      all.push(status);
      // Of a refusal there is nothing to tell.
      if (status !== 429) sent++;
      await until(() => told === sent);
    }
    return all;
  };
  for (let i = 0; i < 2; i++) t.strictSame(await statuses(`good-${i}`, 4), [200, 200, 200, 200], `key ${i}`);
  const bad = [401, 401, 401, 401, 401, 401, 401, 401, 429];
  t.strictSame(await statuses('bad', 9), bad, 'other keys get the eight units that the address has left');
});

t.test('a gateway that does not answer in time is one that is not there', async (t) => {
  const application = await startUpstream(t);
  const silent = createServer(() => undefined);
  const to = { decision: await listen(t, silent), application: application.port };
  const { port } = await startAskingProxy(t, 'nginx', to, (text) =>
    text.replace('proxy_read_timeout 5s', 'proxy_read_timeout 100ms'),
  );
  const { status } = await send(port, '/elsewhere');
  t.ok(status >= 500, `refused, with ${status}`);
});

t.test('exactly the limit, through all of them at once, and over two gateways with one Redis', async (t) => {
  const redis = await startRedis(t);
  const env = { GATEWAY_REDIS_URL: redis.url };
  const application = await startUpstream(t);
  const gateways: (TestGateway & { decision: number })[] = [];
  for (let i = 0; i < 2; i++) gateways.push(await startGateway(t, env));
  const ports: number[] = [];
  for (const [i, name] of askingProxyNames.entries()) {
    const decision = gateways[i % 2]?.decision ?? 0;
    ports.push((await startAskingProxy(t, name, { decision, application: application.port })).port);
  }
  await insideLongWindow();
  const statuses = await Promise.all(
    Array.from({ length: 150 }, async (_, i) => (await send(ports[i % ports.length] ?? 0, '/many/a')).status),
  );
  t.equal(statuses.filter((status) => status === 200).length, 50);
  t.equal(statuses.filter((status) => status === 429).length, 100);
});
