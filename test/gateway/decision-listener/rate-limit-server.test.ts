/** Tests Envoy's rate limit service: descriptors stand for requests and use the same counters. */

import { once } from 'node:events';
import { connect } from 'node:net';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { BEHIND_PROXY, policyFile, startTestGateway, type TestGateway } from '#test/support/gateway.ts';
import { jsonLines } from '#test/support/json.ts';
import { freePort } from '#test/support/ports.ts';
import { type RateLimitClient, rateLimitClient } from '#test/support/rate-limit-client.ts';
import { startRedis } from '#test/support/redis.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';
import { send } from '../proxy/exchange.ts';

const OK = 1;
const OVER_LIMIT = 2;
const ROWS = [
  'name: ip, route: "GET /ip/*", identifier: ip, limit: 3, window: 366d',
  'name: keys, route: "* /keys/*", identifier: api-key, limit: 10, window: 366d',
  'name: many, route: "* /many", identifier: ip, limit: 50, window: 366d',
  'name: few, route: "GET /marked", identifier: ip, limit: 1, window: 366d, mode: mark',
];

interface Asked extends TestGateway, RateLimitClient {
  readonly decisionPort: number;
  readonly grpcPort: number;
}

async function startAsked(t: Test, env: Record<string, string> = {}): Promise<Asked> {
  const [decisionPort, grpcPort] = [await freePort(), await freePort()];
  const begun = Date.now();
  const gateway = await startTestGateway(t, {
    upstream: 'http://127.0.0.1:9',
    policies: policyFile(...ROWS),
    // The time stands still, because replies of the same time are compared.
    clock: () => begun,
    env: {
      GATEWAY_DECISION_PORT: String(decisionPort),
      GATEWAY_DECISION_GRPC_PORT: String(grpcPort),
      ...BEHIND_PROXY,
      ...env,
    },
  });
  return { ...gateway, ...rateLimitClient(t, grpcPort), decisionPort, grpcPort };
}

function descriptor(path: string, from: string, ...more: readonly string[]): readonly string[] {
  return ['method', 'GET', 'path', path, 'remote_address', from, ...more];
}

t.test('asks Envoy to add the marks to the request', async (t) => {
  const { ask } = await startAsked(t);
  const marked = descriptor('/marked', '192.0.2.1');
  t.strictSame((await ask([marked])).requestHeaders, {});
  t.match(await ask([marked]), { code: OK, headers: {}, requestHeaders: { 'x-gateway-over': 'few' } });
  const forged = await ask([descriptor('/marked', '192.0.2.2', 'x-gateway-over', 'few')]);
  t.equal(forged.code, OVER_LIMIT, 'nobody else sets it');
});

t.test('has the same counters as HTTP, and returns every header for the client', async (t) => {
  const { ask, decisionPort } = await startAsked(t);
  const first = await ask([descriptor('/ip/a?b=c', '192.0.2.1')]);
  t.match(first, { code: OK, body: '', grpcStatus: '0' });
  t.match(first.headers, {
    'x-ratelimit-limit': '3',
    'x-ratelimit-remaining': '2',
    ratelimit: /^"ip";r=2;t=\d+$/,
  });
  const headers = { 'x-forwarded-for': '192.0.2.1' };
  t.equal((await send(decisionPort, '/ext-authz/ip/a', { headers })).headers['x-ratelimit-remaining'], '1');
  await ask([descriptor('/ip//a', '192.0.2.1')]);
  const denied = await ask([descriptor('/ip/a', '192.0.2.1')], 1);
  t.equal(denied.code, OVER_LIMIT);
  const plain = await send(decisionPort, '/ext-authz/ip/a', { headers });
  const { decision: _, ...problem } = JSON.parse(denied.body);
  t.match(JSON.parse(plain.body.toString()), problem);
  for (const name of ['x-gateway-ratelimited', 'x-ratelimit-limit', 'cache-control', 'content-type'])
    t.equal(denied.headers[name], plain.headers[name], name);
  // A second can pass between them.
  const later = Number(denied.headers['retry-after']) - Number(plain.headers['retry-after']);
  t.ok(later >= 0 && later < 10, `${later} s later`);
  t.match(denied.headers['x-gateway-decision'], /./);
  t.notOk('content-length' in denied.headers);
  t.equal((await ask([descriptor('/ip/a', '192.0.2.2')])).code, OK, 'another client is admitted');
  t.match(await ask([descriptor('/elsewhere', '192.0.2.1')]), { code: OK, headers: {} });
});

t.test('reads entries as headers, and X-Forwarded-For as the HTTP listener does', async (t) => {
  const { ask } = await startAsked(t, { GATEWAY_DECISION_CREDENTIALS: 'proven' });
  for (let i = 0; i < 10; i++)
    t.equal((await ask([descriptor('/keys/a', `192.0.2.${i}`, 'x-api-key', 'one')])).code, OK);
  t.equal((await ask([descriptor('/keys/a', '192.0.2.99', 'x-api-key', 'one')])).code, OVER_LIMIT);
  t.equal((await ask([descriptor('/keys/a', '192.0.2.99', 'x-api-key', 'two')])).code, OK);
  t.equal(
    (await ask([descriptor('/keys/a', '192.0.2.99')])).headers['x-ratelimit-limit'],
    undefined,
    'without a key no policy applies',
  );

  const hops = await startAsked(t, { GATEWAY_TRUSTED_PROXIES: '2' });
  const chain = (client: string) =>
    descriptor('/ip/a', '10.0.0.1', 'x-forwarded-for', `${client}, 192.0.2.1, 10.0.0.1`);
  for (const client of ['a', 'b', 'c']) t.equal((await hops.ask([chain(client)])).code, OK);
  t.equal((await hops.ask([chain('d')])).code, OVER_LIMIT);
});

t.test('a malformed request is over the limit, with its reason: Envoy passes on errors', async (t) => {
  const { ask, log } = await startAsked(t);
  const whole = descriptor('/elsewhere', '192.0.2.1');
  const cases: readonly (readonly [readonly (readonly string[])[], RegExp])[] = [
    [[], /has 0 descriptors; put all entries into one/],
    [[whole, whole], /has 2 descriptors/],
    [[whole.slice(2)], /no entry method; add the header :method/],
    [[['method', 'M'.repeat(33), ...whole.slice(2)]], /the method is longer than 32 characters/],
    [[[...whole.slice(0, 2), ...whole.slice(4)]], /no entry path; add the header :path/],
    [[whole.slice(0, 4)], /no entry remote_address; /],
    [[[...whole.slice(0, 4), 'remote_address', ' ']], /no entry remote_address; /],
    [[[...whole, 'path', '/b']], /more than one entry path/],
    [[[...whole, 'X-Api-Key', 'a']], /X-Api-Key is neither method, path, remote_address nor a header name/],
    [[[...whole, 'a\r\nb', 'a']], /is neither/],
    [[Array.from({ length: 258 }, (_, i) => `k${i}`)], /more than 128 entries/],
  ];
  for (const [descriptors, reason] of cases) {
    const { code, body } = await ask(descriptors);
    t.equal(code, OVER_LIMIT);
    t.match(JSON.parse(body), { status: 400, message: reason });
  }
  t.match(JSON.parse((await ask([whole], 2)).body).message, /hits_addend is not 1/);
  t.equal((await ask([descriptor('/ip/%00a', '192.0.2.1')])).code, OVER_LIMIT, 'malformed path');
  const { code, body } = await ask([['method', 'get', ...whole.slice(2)]]);
  t.equal(code, OVER_LIMIT, 'a method that is not in upper case is over the limit');
  t.match(JSON.parse(body), { status: 400, message: 'the method "get" is not in upper case' });
  t.equal((await ask([whole])).code, OK);
  t.equal(log.filter(({ msg }) => /sent an authorization request/.test(String(msg))).length, 1);
});

t.test('cuts untrusted peers and those without HTTP/2, and serves others', async (t) => {
  const strange = await startAsked(t, { GATEWAY_TRUSTED_PROXIES: '10.0.0.0/8' });
  const cut = await strange.ask([descriptor('/elsewhere', '192.0.2.1')]).catch(() => ({ code: 0 }));
  t.equal(cut.code, 0, 'an untrusted peer gets no answer');
  const { ask, grpcPort } = await startAsked(t);
  for (const bytes of ['GET / HTTP/1.1\r\nHost: a\r\n\r\n', '\0'.repeat(100)]) {
    const socket = connect(grpcPort, '127.0.0.1');
    socket.on('error', () => undefined);
    socket.write(bytes);
    socket.resume();
    await once(socket, 'close');
  }
  t.equal((await ask([descriptor('/elsewhere', '192.0.2.1')])).code, OK);
  const long = await ask([descriptor(`/${'a'.repeat(100_000)}`, '192.0.2.1')]);
  t.equal(long.grpcStatus, '8', 'RESOURCE_EXHAUSTED');
  t.equal((await ask([descriptor('/elsewhere', '192.0.2.1')])).code, OK);
});

t.test('admits exactly the limit, with HTTP at the same time, over two gateways', async (t) => {
  const redis = await startRedis(t);
  const env = { GATEWAY_REDIS_URL: redis.url };
  const [one, two] = [await startAsked(t, env), await startAsked(t, env)];
  const headers = { 'x-forwarded-for': '192.0.2.1' };
  const passed = await Promise.all(
    Array.from({ length: 150 }, async (_, i) => {
      if (i % 3 === 0) return (await send(one.decisionPort, '/ext-authz/many', { headers })).status === 200;
      return (await (i % 3 === 1 ? one : two).ask([descriptor('/many', '192.0.2.1')])).code === OK;
    }),
  );
  t.equal(passed.filter(Boolean).length, 50);
});

t.test('the access log has a line for each call, and a shutdown closes open connections', async (t) => {
  const file = join(temporaryFolder(t), 'access.jsonl');
  const { ask, gateway, grpcPort, session } = await startAsked(t, {
    GATEWAY_ACCESS_LOG: file,
    GATEWAY_DRAIN_TIMEOUT_MS: '600000',
  });
  const silent = connect(grpcPort, '127.0.0.1');
  t.teardown(() => silent.destroy());
  silent.on('error', () => undefined).resume();
  await once(silent, 'connect');
  for (let i = 0; i < 4; i++) await ask([descriptor('/ip/a?secret', '192.0.2.1')]);
  const closed = once(session, 'close');
  await gateway.close();
  await closed;
  const lines = jsonLines(file);
  t.strictSame(
    lines.map(({ status }) => status),
    [200, 200, 200, 429],
  );
  t.match(lines[0], { method: 'GET', path: '/ip/a', decision: 'allow', policy: 'ip' });
  t.match(lines[3], { decision: 'deny', policy: 'ip', cut: false });
});
