/** HAProxy's agent, over sockets: decisions, and peers that are slow, strange or hostile. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setImmediate as turn } from 'node:timers/promises';
import t, { type Test } from 'tap';
import { Digester } from '#gateway/identity/digest.ts';
import { probeToken } from '#gateway/request/probe.ts';
import { policyFile, startTestGateway, type TestGateway } from '#test/support/gateway.ts';
import { freePort } from '#test/support/ports.ts';
import { startRedis } from '#test/support/redis.ts';
import {
  frame,
  greetedClient,
  HELLO,
  hello,
  notify,
  question,
  type SpopClient,
  settled,
  spopClient,
  withLength,
} from '#test/support/spop-client.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';
import { until } from '#test/support/until.ts';
import { send } from '../proxy/exchange.ts';

const ROWS = [
  'name: ip, route: "GET /ip/*", identifier: ip, limit: 3, window: 366d',
  'name: keys, route: "* /keys/*", identifier: api-key, limit: 3, window: 366d',
  'name: many, route: "* /many", identifier: ip, limit: 50, window: 366d',
];
const ACK = 103;
const DISCONNECT = 102;

interface Asked extends TestGateway {
  readonly decisionPort: number;
  client(): Promise<SpopClient>;
}

async function startAsked(t: Test, env: Record<string, string> = {}, extra = ''): Promise<Asked> {
  const decisionPort = await freePort();
  const gateway = await startTestGateway(t, {
    upstream: 'http://127.0.0.1:9',
    policies: `${policyFile(...ROWS)}\n${extra}`,
    env: { GATEWAY_DECISION_PORT: String(decisionPort), GATEWAY_TRUSTED_PROXIES: 'loopback', ...env },
  });
  return { ...gateway, decisionPort, client: () => greetedClient(t, decisionPort) };
}

function connectionsOf({ gateway }: TestGateway): number | undefined {
  return gateway
    .samples()
    .find(({ name, labels }) => name === 'floodgate_held' && labels?.bound === 'connections')?.value;
}

t.test('has the same counters as HTTP, and returns every header for the client', async (t) => {
  const { client, decisionPort } = await startAsked(t);
  const { ask, received } = await client();
  t.strictSame(received[0]?.items, { version: '2.0', 'max-frame-size': 16_380, capabilities: 'pipelining' });
  t.match(await ask(question('/ip/a?b=c', '192.0.2.1')), {
    status: 200,
    x_ratelimit_limit: '3',
    x_ratelimit_remaining: '2',
    ratelimit: /^"ip";r=2;t=\d+$/,
    body: undefined,
  });
  const headers = { 'x-forwarded-for': '192.0.2.1' };
  t.equal((await send(decisionPort, '/ext-authz/ip/a', { headers })).headers['x-ratelimit-remaining'], '1');
  await ask(question('/ip//a', '192.0.2.1'));
  const denied = await ask(question('/ip/a', '192.0.2.1'));
  t.equal(denied.status, 429);
  const plain = await send(decisionPort, '/ext-authz/ip/a', { headers });
  const { decision, ...problem } = JSON.parse(String(denied.body));
  t.equal(denied.x_gateway_decision, decision);
  t.match(JSON.parse(plain.body.toString()), problem);
  for (const name of ['x-gateway-ratelimited', 'x-ratelimit-limit', 'cache-control', 'content-type'])
    t.equal(denied[name.replaceAll('-', '_')], plain.headers[name], name);
  t.match(denied.retry_after, /^[1-9]\d*$/);
  t.equal((await ask(question('/ip/a', '192.0.2.2'))).status, 200, 'another client is admitted');
  t.strictSame(await ask(question('/elsewhere', '192.0.2.1')), { status: 200 });
});

t.test('reads headers, addresses and X-Forwarded-For as the HTTP listener does', async (t) => {
  const { client } = await startAsked(t, { GATEWAY_DECISION_CREDENTIALS: 'proven' });
  const { ask } = await client();
  const key = (from: string, name = 'x-api-key') => question('/keys/a', from, [[name, 'one']]);
  for (const from of ['192.0.2.1', '192.0.2.2', '192.0.2.3']) t.equal((await ask(key(from))).status, 200);
  t.equal((await ask(key('192.0.2.4', 'X-Api-Key'))).status, 429);
  t.strictSame(await ask(question('/keys/a', '192.0.2.4')), { status: 200 }, 'no policy applies');
  const forged = [
    ['x-forwarded-for', '203.0.113.1'],
    ['Connection', 'x-api-key'],
    ['content-length', 'x'],
    ['transfer-encoding', 'gzip'],
    ['host', 'example.org'],
  ] as const;
  for (let i = 0; i < 3; i++) t.equal((await ask(question('/ip/a', '192.0.2.1', forged))).status, 200);
  const browser = [['accept', 'text/html']] as const;
  const denied = { status: 429, content_type: 'application/problem+json' };
  t.match(await ask(question('/ip/a', '192.0.2.1', browser)), denied, 'fields of the client are ignored');
  const internal = await ask(question('/ip/a', '192.0.2.9', [['x-formbricks-client-ip', '192.0.2.1']]));
  t.equal(internal.status, 400);

  const hops = await (await startAsked(t, { GATEWAY_TRUSTED_PROXIES: '2' })).client();
  const chain = (first: string) => question('/ip/a', `${first}, 192.0.2.1, 10.0.0.1`);
  for (const first of ['a', 'b', 'c']) t.equal((await hops.ask(chain(first))).status, 200);
  t.equal((await hops.ask(chain('d'))).status, 429);
});

t.test('400: names the missing line of the configuration, and keeps the connection', async (t) => {
  const { client, log } = await startAsked(t);
  const { ask, isClosed } = await client();
  const whole = question('/elsewhere', '192.0.2.1');
  const cases: readonly (readonly [Readonly<Record<string, string | Buffer | null>>, RegExp])[] = [
    [{}, /add method=method/],
    [{ ...whole, method: 'G T' }, /add method=method/],
    [{ ...whole, method: 'G'.repeat(33) }, /longer than 32 characters/],
    [{ ...whole, client: null }, /add client=src/],
    [{ method: 'GET', client: '192.0.2.1' }, /add uri=pathq/],
    [{ ...whole, headers: null }, /add headers=req.hdrs_bin/],
    [{ ...whole, headers: 'a: b\r\n' }, /add headers=req.hdrs_bin/],
    [{ ...whole, method: 'get' }, /"get" is not in upper case/],
    [{ ...whole, uri: '/a%2Fb' }, /encoded slash/],
    [
      question(
        '/',
        '192.0.2.1',
        Array.from({ length: 129 }, (_, i) => [`a${i}`, '']),
      ),
      /more than 128 fields/,
    ],
  ];
  for (const [args, reason] of cases) {
    const { status, body } = await ask(args);
    t.equal(status, 400);
    t.match(JSON.parse(String(body)).message, reason);
  }
  t.match(await ask({ ...whole, method: 'OPTIONS', uri: null }), { status: 400 });
  t.equal((await ask(whole)).status, 200);
  t.notOk(isClosed());
  t.equal(log.filter(({ msg }) => /sent an authorization request/.test(String(msg))).length, 1);
});

t.test('answers a probe of floodgate doctor without counting it', async (t) => {
  const { client, gateway } = await startAsked(t);
  const { ask } = await client();
  const token = probeToken(new Digester(await gateway.control.salt()), Date.now());
  const { status, body } = await ask(question('/ip/a', '192.0.2.1', [['x-gateway-probe', token]]));
  t.equal(status, 403, 'the status is 403, because HAProxy forwards what it admits');
  t.match(JSON.parse(String(body)), { isAsked: true, isPeerTrusted: true, forwardedCount: 1 });
  t.match(await ask(question('/ip/a', '192.0.2.1')), { x_ratelimit_remaining: '2' });
});

t.test('answers with a body in UTF-8', async (t) => {
  const extra = 'deny: [{ address: 192.0.2.7, status: 403, reason: "écrivez-nous 🙂" }]';
  const { client } = await startAsked(t, {}, extra);
  const { status, body } = await (await client()).ask(question('/elsewhere', '192.0.2.7'));
  t.equal(status, 403);
  t.match(JSON.parse(Buffer.from(String(body), 'latin1').toString()).message, /écrivez-nous 🙂/);
});

t.test('an answer larger than the frames of HAProxy has only the status', async (t) => {
  const gateway = await startAsked(t);
  const { ask, send, frames } = spopClient(t, gateway.decisionPort);
  send(hello({ ...HELLO, 'max-frame-size': 300 }));
  t.equal((await frames(1))[0]?.items['max-frame-size'], 300);
  for (let i = 0; i < 3; i++) t.match(await ask(question('/ip/a', '192.0.2.1')), { x_ratelimit_limit: '3' });
  t.strictSame(await ask(question('/ip/a', '192.0.2.1')), { status: 429 });
});

t.test('reads frames in single bytes, and answers health checks and disconnects', async (t) => {
  const gateway = await startAsked(t);
  const slow = spopClient(t, gateway.decisionPort);
  slow.socket.setNoDelay(true);
  const args = question('/elsewhere', '192.0.2.1');
  for (const byte of Buffer.concat([hello(), notify([9, 300], args)].map(withLength))) {
    slow.socket.write(Buffer.from([byte]));
    await turn();
  }
  await slow.frames(2);
  t.match(slow.received, [{ type: 101 }, { type: ACK, ids: [9, 300], items: { status: 200 } }]);

  const check = spopClient(t, gateway.decisionPort);
  check.send(hello({ ...HELLO, healthcheck: true }));
  await settled(slow, () => Number(check.isClosed()));
  t.ok(check.isClosed());
  t.match(check.received, [{ type: 101 }]);
  const last = await gateway.client();
  last.send(notify([9, 301], args), frame(2, [0, 0], Buffer.alloc(0)));
  await settled(slow, () => Number(last.isClosed()));
  t.ok(last.isClosed());
  const answers = [
    { type: 101 },
    { type: ACK, ids: [9, 301] },
    { type: DISCONNECT, items: { 'status-code': 0 } },
  ];
  t.match(last.received, answers, 'earlier requests are answered');
  const other = await gateway.client();
  slow.socket.destroy();
  await settled(other, () => -(connectionsOf(gateway) ?? 0));
  t.equal(connectionsOf(gateway), 1, 'the places of the closed connections are free');
});

t.test('refuses a proxy that is not trusted, with the reason', async (t) => {
  const strange = await startAsked(t, { GATEWAY_TRUSTED_PROXIES: '10.0.0.0/8' });
  const cut = await strange.client();
  const told = [{ type: DISCONNECT, items: { message: /GATEWAY_TRUSTED_PROXIES/ } }];
  if (t.match(cut.received, told)) await until(cut.isClosed);
  t.match(strange.log.at(-1), { reason: /GATEWAY_TRUSTED_PROXIES/ });
});

t.test('admits exactly the limit, with HTTP at the same time, over two gateways', async (t) => {
  const redis = await startRedis(t);
  const env = { GATEWAY_REDIS_URL: redis.url };
  const [one, two] = [await startAsked(t, env), await startAsked(t, env)];
  const clients = [await one.client(), await two.client(), await two.client()];
  const args = question('/many', '192.0.2.1');
  for (const { socket } of clients)
    socket.write(Buffer.concat(Array.from({ length: 3000 }, (_, i) => withLength(notify([5, i], args)))));
  const headers = { 'x-forwarded-for': '192.0.2.1' };
  const http = await Promise.all(
    Array.from(
      { length: 50 },
      async () => (await send(one.decisionPort, '/ext-authz/many', { headers })).status,
    ),
  );
  for (const { frames } of clients) await frames(3001);
  const answers = clients.flatMap(({ received }) => received.filter(({ type }) => type === ACK));
  t.equal(answers.length, 9000, 'every request has an answer');
  t.equal(new Set(clients[0]?.received.map(({ ids }) => ids[1])).size, 3000, 'every answer has its own id');
  const passed = [...http, ...answers.map(({ items }) => items.status)].filter((status) => status === 200);
  t.equal(passed.length, 50);
});

t.test(
  'a shutdown answers what has arrived, then disconnects; every request is in the access log',
  async (t) => {
    const file = join(temporaryFolder(t), 'access.jsonl');
    const { gateway, client, decisionPort } = await startAsked(t, {
      GATEWAY_ACCESS_LOG: file,
      GATEWAY_DRAIN_TIMEOUT_MS: '10000',
    });
    const [idle, busy] = [await client(), await client()];
    const unknown = spopClient(t, decisionPort);
    for (let i = 0; i < 4; i++) busy.send(notify([1, i], question('/ip/a?secret', '192.0.2.1')));
    const closed = gateway.close();
    await Promise.all([busy, idle, unknown].map(({ isClosed }) => until(isClosed)));
    await closed;
    const statuses = busy.received.filter(({ type }) => type === ACK).map(({ items }) => items.status);
    t.strictSame(statuses, [200, 200, 200, 429]);
    for (const { received } of [idle, busy])
      t.match(received.at(-1), { type: DISCONNECT, items: { 'status-code': 0, message: /shutting down/ } });
    const lines = readFileSync(file, 'utf8')
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
    t.strictSame(
      lines.map(({ status }) => status),
      [200, 200, 200, 429],
    );
    t.match(lines[3], { method: 'GET', path: '/ip/a', decision: 'deny', policy: 'ip', cut: false });
  },
);

t.test('a shutdown waits for the answers of a slow store', async (t) => {
  const redis = await startRedis(t);
  const { gateway, client } = await startAsked(t, {
    GATEWAY_REDIS_URL: redis.url,
    GATEWAY_DRAIN_TIMEOUT_MS: '10000',
  });
  const [idle, busy] = [await client(), await client()];
  redis.freeze();
  t.teardown(() => redis.thaw());
  for (let i = 0; i < 4; i++) busy.send(notify([1, i], question('/ip/a', '192.0.2.1')));
  // The store is not asked about this one. Its answer shows that those before it are outstanding.
  busy.send(notify([1, 4], question('/elsewhere', '192.0.2.1')));
  await busy.frames(2);
  t.strictSame(
    busy.received.map(({ ids }) => ids[1]),
    [0, 4],
    'the HELLO and one answer arrived',
  );
  const closed = gateway.close();
  await until(idle.isClosed, 'idle connections end when the drain begins');
  redis.thaw();
  await closed;
  await until(busy.isClosed);
  t.strictSame(
    busy.received.slice(2).map(({ type, ids, items }) => [type, ids[1], items.status]),
    [
      [ACK, 0, 200],
      [ACK, 1, 200],
      [ACK, 2, 200],
      [ACK, 3, 429],
      [DISCONNECT, 0, undefined],
    ],
  );
});
