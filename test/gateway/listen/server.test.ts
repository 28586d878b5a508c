import { spawn } from 'node:child_process';
import t from 'tap';
import { sendFrom } from '#test/gateway/bounds/from.ts';
import { startBareServer } from '#test/gateway/proxy/bare-server.ts';
import { send, startRawUpstream } from '#test/gateway/proxy/exchange.ts';
import { busyFor } from '#test/support/busy.ts';
import { startTestGateway, startUpstream } from '#test/support/gateway.ts';
import { startGatewayProcess } from '#test/support/gateway-process.ts';
import { hammer } from '#test/support/hammer.ts';
import { freePort } from '#test/support/ports.ts';
import { projectRoot } from '#test/support/process.ts';
import { sendRaw } from '#test/support/raw.ts';
import { until } from '#test/support/until.ts';
import { startOpenEnded } from '#test/support/upstreams.ts';

/** Returns status and problem of a reply that the gateway wrote itself. */
function own(text: string): { status: number; head: string; body: Record<string, unknown> } {
  const end = text.indexOf('\r\n\r\n');
  return {
    status: Number(/^HTTP\/1\.1 (\d{3}) /.exec(text)?.[1]),
    head: text.slice(0, end),
    body: JSON.parse(text.slice(end + 4)),
  };
}

// These start first and are checked last, so that their time passes during the other tests.
const slow = startUpstream(t)
  .then((upstream) => startTestGateway(t, { upstream: upstream.origin }))
  .then(async ({ port }) => {
    const begin = performance.now();
    const silence = ['', '\r\n'].map((text) => sendRaw(port, text).ended());
    const reply = await sendRaw(port, 'GET / HTTP/1.1\r\nHost: a\r\nX-Slow: ').ended();
    return { reply, took: performance.now() - begin, silence: await Promise.all(silence) };
  });

t.test('400: a chunked body with broken framing ends the upstream call', async (t) => {
  const upstream = await startRawUpstream(t, () => undefined);
  const { port } = await startTestGateway(t, { upstream: upstream.origin });
  const client = sendRaw(
    port,
    'POST /up HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n',
  );
  await until(() => upstream.sockets.length === 1, 'the upload has begun');
  client.socket.write('zz\r\n');
  t.match(own(await client.ended()), { status: 400, body: { message: String, details: {} } });
  await until(() => upstream.sockets[0]?.destroyed === true, 'the upstream call is aborted');
});

t.test(
  'a client that exceeds its share of pipelined requests must wait before it connects again',
  async (t) => {
    const upstream = await startUpstream(t, (_req, res) => res.end('ok'));
    const get = 'GET /a HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n';
    const pipelined = 'GET /a HTTP/1.1\r\nHost: a\r\n\r\n'.repeat(2000);
    const bounds = { pipelined: { perClient: 50 } };
    const strict = await startBareServer(t, { origin: upstream.origin, bounds, penaltyMs: 60_000 });
    await sendRaw(strict.port, pipelined).ended();
    t.equal(await sendRaw(strict.port, get).ended(), '', 'its new connections are closed');
    t.equal((await sendFrom('127.0.0.9', strict.port, '/a')).status, 200, 'another client is served');

    const lenient = await startBareServer(t, { origin: upstream.origin, bounds, penaltyMs: 1 });
    await sendRaw(lenient.port, pipelined).ended();
    await until(() => lenient.bounds.pipelined.held === 0, 'its share is given back');
    t.match(await sendRaw(lenient.port, get).ended(), /^HTTP\/1\.1 200 /);
    await until(() => lenient.clients.size === 0, 'and it is forgotten');
  },
);

t.test('what cannot be read as a request, or is not served, counts as malformed', async (t) => {
  const { port, gateway } = await startTestGateway(t);
  const counted = (outcome: string) =>
    gateway.samples().find(({ labels }) => labels.outcome === outcome)?.value;
  const refused = [
    'TRACE / HTTP/1.1\r\nHost: a\r\n\r\n',
    'CONNECT a:80 HTTP/1.1\r\nHost: a\r\n\r\n',
    'GET / HTTP/2.0\r\nHost: a\r\n\r\n',
    'GET / HTTP/0.9\r\nHost: a\r\n\r\n',
    'hello\r\n\r\n',
    `GET / HTTP/1.1\r\nHost: a\r\nX: ${'x'.repeat(20_000)}\r\n\r\n`,
    `GET / HTTP/1.1\r\nHost: a\r\n${'X: x\r\n'.repeat(200)}\r\n`,
  ];
  for (const [i, text] of refused.entries()) {
    t.match(await sendRaw(port, text).ended(), /^HTTP\/1\.1 4/);
    t.equal(counted('malformed'), i + 1, text.slice(0, 40));
  }
  const body = 'POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nno chunk\r\n';
  t.match(await sendRaw(port, body).ended(), /^HTTP\/1\.1 400/);
  t.equal(counted('malformed'), refused.length, 'once a request: its head was counted');
  t.equal(counted('uncovered'), 1);
});

t.test('OPTIONS *: stops reading an endless body', async (t) => {
  const { port } = await startTestGateway(t);
  const client = sendRaw(port, 'OPTIONS * HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n');
  const piece = `10000\r\n${'x'.repeat(0x10000)}\r\n`;
  const send = (): void => {
    while (client.socket.write(piece));
  };
  client.socket.on('drain', send);
  send();
  t.match(await client.ended(), /^HTTP\/1\.1 204 No Content\r\n/);
});

t.test('SIGTERM under load: every request on an open connection gets a whole reply; exit 0', async (t) => {
  const upstream = await startUpstream(t, (_req, res) => {
    setTimeout(() => res.end('x'.repeat(1000)), 2);
  });
  const env = { GATEWAY_UPSTREAM: upstream.origin, GATEWAY_DRAIN_TIMEOUT_MS: '600000' };
  const { port, stop } = await startGatewayProcess(t, env);
  const load = hammer(port, '/x', 32);
  await until(() => load.answered() > 300, 'load');
  t.equal(await stop('SIGTERM'), 0);
  await load.ended;
  t.strictSame(load.broken, []);
});

t.test('a shutdown cuts open tunnels and streams at the deadline, not before', async (t) => {
  const upstream = await startOpenEnded(t);
  const { port, gateway } = await startTestGateway(t, {
    upstream: upstream.origin,
    env: { GATEWAY_DRAIN_TIMEOUT_MS: '3000' },
  });
  const events = sendRaw(port, 'GET /events HTTP/1.1\r\nHost: a\r\n\r\n');
  const tunnel = sendRaw(
    port,
    'GET /ws HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n',
  );
  await Promise.all([events.until(/data: 1/), tunnel.until(/open$/)]);
  const begin = performance.now();
  // The streams never end by themselves, so nothing but the deadline ends the wait for them.
  const closed = gateway.close();
  t.notOk(gateway.ready());
  tunnel.socket.write('still here');
  await tunnel.until(/still here$/);
  await closed;
  const took = performance.now() - begin;
  t.ok(took >= 2990, `only after its time: ${Math.round(took)} ms`);
  await Promise.all([events.ended(), tunnel.ended()]);
});

t.test('running out of file descriptors costs connections, not the process', async (t) => {
  const upstream = await startUpstream(t, (_req, res) => res.end('ok'));
  const port = await freePort();
  const child = spawn('sh', ['-c', 'ulimit -n 48; exec "$0" gateway/main.ts', process.execPath], {
    cwd: projectRoot,
    env: {
      GATEWAY_HOST: '127.0.0.1',
      GATEWAY_PORT: String(port),
      GATEWAY_ADMIN_PORT: String(await freePort()),
      GATEWAY_UPSTREAM: upstream.origin,
      GATEWAY_POLICIES: 'policies.yaml',
      UV_THREADPOOL_SIZE: '1',
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  t.teardown(() => child.kill('SIGKILL'));
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (chunk: Buffer) => {
      output += chunk;
    });
  }
  await until(() => output.includes('Gateway ready'), 'ready');
  const crowd = Array.from({ length: 80 }, () => sendRaw(port, 'GET /'));
  await until(() => crowd.some(({ socket }) => socket.closed), 'there are not enough for all');
  for (const { socket } of crowd) socket.destroy();
  // Connections that the kernel had accepted are still waiting to be refused.
  let status = 0;
  await until(async () => {
    status = await send(port, '/').then(
      (answer) => answer.status,
      () => 0,
    );
    return status !== 0 || child.exitCode !== null;
  }, 'a connection is taken again');
  t.equal(status, 200);
  t.equal(child.exitCode, null);
});

t.test('node:http: a request that arrived before the keep-alive time was over is answered', async (t) => {
  let begun = 0;
  const { port } = await startBareServer(t, {
    origin: 'http://127.0.0.1:9',
    decisionServer: () => ({
      keepAliveMs: 1,
      headerBytesMax: 65_536,
      begin({ res }) {
        res.writeHead(200, ['Content-Length', '2']);
        res.end(`${++begun};`, 'latin1');
      },
    }),
  });
  const request = 'GET / HTTP/1.1\r\nHost: a\r\n\r\n';
  const client = sendRaw(port, request);
  await client.until(/1;$/);
  client.socket.write(request);
  // node:http adds a second to the time.
  busyFor(1500);
  await client.until(/2;$/);
  t.match(await client.ended(), /2;$/, 'the connection ends after the reply');
});

t.test('408: a head that does not arrive within 10 seconds', async (t) => {
  const { reply, took } = await slow;
  const { status, body } = own(reply);
  t.equal(status, 408);
  t.match(body, { message: String, details: {} });
  // Node's own limit is a minute.
  t.ok(took > 9_900 && took < 60_000, `took ${Math.round(took)} ms`);
});

t.test('a connection without a byte, or with an empty line, gets no reply', async (t) => {
  // Its first request could take it for its own.
  t.same((await slow).silence, ['', '']);
});
