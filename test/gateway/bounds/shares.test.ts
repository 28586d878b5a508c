/**
 * Tests how much of each bound one client may hold, which reply it gets beyond that, and that everything is given back.
 */
import type { Socket } from 'node:net';
import t, { type Test } from 'tap';
import { startBareServer } from '#test/gateway/proxy/bare-server.ts';
import { startRawUpstream } from '#test/gateway/proxy/exchange.ts';
import { startUpstream } from '#test/support/gateway.ts';
import { sendRaw } from '#test/support/raw.ts';
import { until } from '#test/support/until.ts';
import { startOpenEnded } from '#test/support/upstreams.ts';
import { connectMany, sendFrom } from './from.ts';

const HOSTILE = '127.0.0.9';
const OTHER = '127.0.0.10';
const VICTIM = '127.0.0.1';
const GET = 'GET / HTTP/1.1\r\nHost: a\r\n\r\n';

/** Checks the status of a refusal, and the parts that every refusal has. */
function refusal(t: Test, text: string, bound: string, scope: string): number {
  t.match(text, /\r\nRetry-After: [1-9]\d*\r\n/);
  t.match(text, /\r\nContent-Type: application\/problem\+json\r\n/);
  const body = JSON.parse(text.slice(text.indexOf('\r\n\r\n') + 4));
  t.match(body, { message: String, details: { bound, scope } });
  t.equal(body.code, scope === 'client' ? 'gateway_client_busy' : 'gateway_overloaded');
  return Number(/^HTTP\/1\.1 (\d+)/.exec(text)?.[1]);
}

t.test('connections: 429 beyond the share, 503 beyond the total', async (t) => {
  const upstream = await startUpstream(t, (_req, res) => res.end('ok'));
  const { port, bounds, clients, warnings } = await startBareServer(t, {
    origin: upstream.origin,
    bounds: { connections: { total: 6, perClient: 4 } },
  });
  const hostile = connectMany(t, { address: HOSTILE, port, count: 5, text: GET });
  await until(() => hostile.sockets.every((_, i) => hostile.received(i) !== ''), 'all are answered');
  const texts = hostile.sockets.map((_, i) => hostile.received(i));
  const refused = texts.find((text) => !text.startsWith('HTTP/1.1 200')) ?? '';
  t.equal(refusal(t, refused, 'connections', 'client'), 429);
  t.match(refused, /\r\nAccess-Control-Allow-Origin: \*\r\n/);
  t.equal((await sendFrom(VICTIM, port, '/')).status, 200);
  const others = connectMany(t, { address: OTHER, port, count: 3, text: GET });
  await until(() => others.sockets.every((_, i) => others.received(i) !== ''), 'all are answered');
  const full = others.sockets
    .map((_, i) => others.received(i))
    .find((text) => !text.startsWith('HTTP/1.1 200'));
  t.equal(refusal(t, full ?? '', 'connections', 'total'), 503);
  t.same(
    warnings.map(({ setting }) => setting),
    ['GATEWAY_CLIENT_SHARE', 'GATEWAY_CONNECTIONS'],
  );
  hostile.leave();
  others.leave();
  await until(() => clients.size === 0, 'nobody is remembered');
  t.equal(bounds.connections.held, 0);
});

t.test('waiting: clients take turns, and one client has a maximum', async (t) => {
  const held: { socket: Socket; url: string }[] = [];
  const answer = (): void =>
    void held.shift()?.socket.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok');
  const order: string[] = [];
  const upstream = await startRawUpstream(t, (socket, text) => {
    const url = text.match(/GET \S+/g)?.at(-1) ?? '';
    order.push(url);
    held.push({ socket, url });
  });
  const {
    port,
    bounds,
    upstream: pools,
  } = await startBareServer(t, {
    origin: upstream.origin,
    bounds: { upstream_connections: { total: 1, perClient: 1 }, waiting: { total: 7, perClient: 5 } },
  });
  const first = connectMany(t, { address: HOSTILE, port, count: 1, text: GET.replace('/', '/hostile') });
  await until(() => order.length === 1, 'the connection is held');
  const hostile = connectMany(t, { address: HOSTILE, port, count: 6, text: GET.replace('/', '/hostile') });
  await until(() => bounds.waiting.refusals.client === 1, 'five wait, one is refused');
  t.equal(pools.requests.waiting, 5);
  const others = [VICTIM, OTHER].map((address) => sendFrom(address, port, '/polite'));
  await until(() => pools.requests.waiting === 7, 'two more wait');
  const full = await sendFrom(VICTIM, port, '/polite');
  t.equal(full.status, 503);
  t.match(JSON.parse(full.body.toString()), { code: 'gateway_overloaded', details: { bound: 'waiting' } });
  for (let i = 1; i <= 4; i++) {
    answer();
    await until(() => order.length === i + 1, 'the next one is served');
  }
  t.equal(
    order.slice(0, 5).filter((url) => url === 'GET /polite').length,
    2,
    'two requests of the polite client are among the first five',
  );
  while (held.length > 0 || pools.requests.waiting > 0) {
    answer();
    await new Promise((resolve) => setImmediate(resolve));
  }
  for (const other of await Promise.all(others)) t.equal(other.status, 200);
  const texts = hostile.sockets.map((_, i) => hostile.received(i));
  t.equal(refusal(t, texts.find((text) => text.includes('429')) ?? '', 'waiting', 'client'), 429);
  first.leave();
  hostile.leave();
  await until(() => bounds.waiting.held === 0 && bounds.upstream_connections.held === 0, 'all is given back');
});

t.test('a client that waits for its own requests gets another error than for a slow upstream', async (t) => {
  const upstream = await startRawUpstream(t, (socket) => {
    socket.write('HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nbegun');
  });
  const { port } = await startBareServer(t, {
    origin: upstream.origin,
    timeoutMs: 300,
    bounds: { upstream_connections: { total: 4, perClient: 1 } },
  });
  const first = connectMany(t, { address: HOSTILE, port, count: 1, text: GET });
  await until(() => first.received(0).endsWith('begun'), 'it holds its share');
  const { status, body } = await sendFrom(HOSTILE, port, '/');
  t.equal(status, 429);
  t.match(JSON.parse(body.toString()), { details: { bound: 'upstream_connections', scope: 'client' } });
});

t.test('uploads: one client has a maximum, and when the total is reached the slowest is cut', async (t) => {
  const upstream = await startUpstream(t, (req, res) => {
    req.on('error', () => undefined);
    req.resume().on('end', () => res.end('ok'));
  });
  const { port, bounds, clients } = await startBareServer(t, {
    origin: upstream.origin,
    bounds: { uploads: { total: 4, perClient: 3 } },
    checkMs: 50,
  });
  const text = 'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\nx';
  const hostile = connectMany(t, { address: HOSTILE, port, count: 6, text });
  await until(
    () => bounds.uploads.held === 3 && bounds.waiting.held === 33,
    'its share, and the others wait',
  );
  const body = Buffer.alloc(100_000);
  t.equal(
    (await sendFrom(VICTIM, port, '/', { method: 'POST', body })).status,
    200,
    'the fourth place is left for others',
  );
  const other = connectMany(t, { address: OTHER, port, count: 1, text });
  await until(() => bounds.uploads.held === 4, 'all are held');
  t.equal((await sendFrom(VICTIM, port, '/', { method: 'POST', body })).status, 200, 'the slowest was cut');
  const cut = [...hostile.sockets.map((_, i) => hostile.received(i)), other.received(0)].filter(
    (text) => text !== '',
  );
  t.ok(cut.length > 0);
  for (const text of cut) t.match(text, /^HTTP\/1\.1 408 /);
  hostile.leave();
  other.leave();
  await until(() => clients.size === 0, 'all is given back');
  for (const bound of Object.values(bounds)) t.equal(bound.held, 0, bound.name);
});

t.test('upgrades: counted while the tunnel is open', async (t) => {
  const upstream = await startOpenEnded(t);
  const { port, bounds, clients } = await startBareServer(t, {
    origin: upstream.origin,
    bounds: { upgrades: { total: 3, perClient: 2 }, upstream_connections: { total: 1 } },
  });
  const text = 'GET /ws HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n';
  const hostile = connectMany(t, { address: HOSTILE, port, count: 3, text });
  await until(
    () => hostile.sockets.every((_, i) => /open$|\}$/.test(hostile.received(i))),
    'all are answered',
  );
  const refused = hostile.sockets.map((_, i) => hostile.received(i)).find((text) => !text.endsWith('open'));
  t.equal(refusal(t, refused ?? '', 'upgrades', 'client'), 429);
  t.equal(bounds.upstream_connections.held, 0, 'a tunnel is not a request in progress');
  const others = connectMany(t, { address: OTHER, port, count: 2, text });
  await until(() => others.sockets.every((_, i) => /open$|\}$/.test(others.received(i))), 'all are answered');
  const full = others.sockets.map((_, i) => others.received(i)).find((text) => !text.endsWith('open'));
  t.equal(refusal(t, full ?? '', 'upgrades', 'total'), 503);
  hostile.leave();
  others.leave();
  await until(() => clients.size === 0, 'all is given back');
  t.equal(bounds.upgrades.held, 0);
});

t.test('behind a trusted proxy each forwarded client has its share, an IPv6 client by its /64', async (t) => {
  const upstream = await startUpstream(t, (_req, res) => {
    res.writeHead(200, { 'content-type': 'text/event-stream' });
    res.write('data: 1\n\n');
  });
  const { port, clients, bounds } = await startBareServer(t, {
    origin: upstream.origin,
    bounds: { streams: { perClient: 1 }, connections: { perClient: 1 } },
    trustedProxies: 'loopback',
  });
  const ask = async (forwarded: string): Promise<number> => {
    const client = sendRaw(port, `GET / HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: ${forwarded}\r\n\r\n`);
    t.teardown(() => client.socket.destroy());
    return Number(/ (\d+) /.exec(await client.until(/data: 1|\}$/))?.[1]);
  };
  t.equal(await ask('192.0.2.1'), 200);
  t.equal(await ask('192.0.2.1'), 429);
  t.equal(await ask('192.0.2.2'), 200);
  t.equal(await ask('2001:db8::1'), 200);
  t.equal(await ask('2001:db8::2'), 429, 'the same network shares its places');
  t.equal(await ask('2001:db8:0:1::1'), 200);
  t.equal(clients.size, 4, 'only clients that hold a place are counted');
  t.equal(bounds.connections.held, 6);
});
