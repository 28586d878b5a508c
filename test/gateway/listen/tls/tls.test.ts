/** Tests the public listener with TLS and different kinds of clients. */
import { once } from 'node:events';
import { type AddressInfo, connect, createServer } from 'node:net';
import { text } from 'node:stream/consumers';
import t from 'tap';
import { Handshakes } from '#gateway/listen/tls/handshakes.ts';
import { readKeyPair } from '#gateway/listen/tls/key-pair.ts';
import { startBareServer } from '#test/gateway/proxy/bare-server.ts';
import { startRawUpstream, values } from '#test/gateway/proxy/exchange.ts';
import { createAuthority } from '#test/support/certificates.ts';
import { type Owner, startTestGateway, startUpstream } from '#test/support/gateway.ts';
import { sendRaw } from '#test/support/raw.ts';
import { secured, sendTls } from '#test/support/tls-client.ts';
import { until } from '#test/support/until.ts';
import { startOpenEnded, startSlow } from '#test/support/upstreams.ts';

const authority = createAuthority(t);
const { ca } = authority;
const { cert, key } = authority.issue('server', 'IP:127.0.0.1,DNS:localhost');
const TLS = { GATEWAY_TLS_CERT: cert, GATEWAY_TLS_KEY: key };

const ALERT = 21;

/** Passes bytes on, and reads the types of the records that the server sends (RFC 5246 6.2.1). */
async function startRelay(owner: Owner, to: number) {
  const chunks: Buffer[] = [];
  const relay = createServer((near) => {
    const far = connect({ port: to, host: '127.0.0.1' });
    far.on('data', (chunk: Buffer) => chunks.push(chunk));
    near.pipe(far).pipe(near);
    for (const side of [near, far]) side.on('error', () => side.destroy());
  });
  relay.listen(0, '127.0.0.1');
  await once(relay, 'listening');
  owner.teardown(() => relay.close());
  return {
    port: (relay.address() as AddressInfo).port,
    recordTypes(): number[] {
      const bytes = Buffer.concat(chunks);
      const types: number[] = [];
      for (let at = 0; at + 5 <= bytes.length; at += 5 + bytes.readUInt16BE(at + 3))
        types.push(bytes[at] ?? 0);
      return types;
    },
  };
}

// Its 10 seconds pass during the other tests.
const silence = startUpstream(t)
  .then((upstream) => startTestGateway(t, { upstream: upstream.origin, env: TLS }))
  .then(async ({ port }) => text(await secured(port, ca)));

t.test('requests and replies of every size pass, and the application hears of https', async (t) => {
  const { port } = await startTestGateway(t, { env: TLS });
  const body = 'x'.repeat(3_000_000);
  const answer = await sendTls(port, '/a', ca, { method: 'POST', body });
  t.equal(answer.status, 200);
  const seen = JSON.parse(answer.body.toString());
  t.equal(seen.body, body);
  t.strictSame(values(seen.headers, 'x-forwarded-proto'), ['https']);
  t.strictSame(values(seen.headers, 'x-forwarded-for'), ['127.0.0.1']);
});

t.test('400: plain HTTP is told that the port is for HTTPS', async (t) => {
  const { port, gateway } = await startTestGateway(t, { env: TLS });
  const answer = await sendRaw(port, 'GET / HTTP/1.1\r\nHost: a\r\n\r\n').ended();
  t.match(answer, /^HTTP\/1\.1 400 Bad Request\r\n[\s\S]*https:\/\//);
  const failed = gateway
    .samples()
    .find(
      ({ name, labels }) => name === 'floodgate_tls_handshakes_failed_total' && labels.reason === 'protocol',
    );
  t.equal(failed?.value, 1);
});

t.test('WebSockets and event streams pass', async (t) => {
  const upstream = await startOpenEnded(t);
  const { port } = await startTestGateway(t, { upstream: upstream.origin, env: TLS });
  const events = await secured(port, ca);
  const tunnel = await secured(port, ca);
  const received = { events: '', tunnel: '' };
  events.on('data', (chunk: Buffer) => (received.events += chunk.toString()));
  tunnel.on('data', (chunk: Buffer) => (received.tunnel += chunk.toString()));
  events.write('GET /events HTTP/1.1\r\nHost: a\r\n\r\n');
  tunnel.write('GET /ws HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n');
  await until(() => /data: 1/.test(received.events) && /open$/.test(received.tunnel), 'both are open');
  tunnel.write('there and back');
  await until(() => /there and back$/.test(received.tunnel), 'the echo');
  events.destroy();
  tunnel.end();
  await once(tunnel, 'close');
});

t.test('a shutdown answers what was sent, and does not wait for handshakes', async (t) => {
  const upstream = await startSlow(t);
  const { port, gateway } = await startTestGateway(t, {
    upstream: upstream.origin,
    env: { ...TLS, GATEWAY_DRAIN_TIMEOUT_MS: '60000' },
  });
  const silent = sendRaw(port, '');
  const begun = sendRaw(port, '\x16\x03\x01');
  await Promise.all([once(silent.socket, 'connect'), once(begun.socket, 'connect')]);
  const pending = sendTls(port, '/a', ca);
  await until(() => upstream.arrived() === 1, 'the request is with the application');
  const closed = gateway.close();
  t.equal((await pending).body.toString(), 'whole');
  await closed;
  await Promise.all([silent.ended(), begun.ended()]);
});

t.test('HTTP/1.0: a reply that the upstream breaks off ends without a close_notify', async (t) => {
  const upstream = await startRawUpstream(t, (socket) => {
    socket.write('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n');
  });
  const { port } = await startTestGateway(t, { upstream: upstream.origin, env: TLS });
  for (const isWhole of [true, false]) {
    // The types of records can be read up to TLS 1.2.
    const relay = await startRelay(t, port);
    const client = await secured(relay.port, ca, { maxVersion: 'TLSv1.2' });
    client.on('error', () => undefined);
    let received = '';
    client.on('data', (chunk: Buffer) => {
      received += chunk.toString('latin1');
    });
    client.write('GET / HTTP/1.0\r\n\r\n');
    await until(() => received.endsWith('hello'));
    if (isWhole) upstream.sockets.at(-1)?.end('0\r\n\r\n');
    else upstream.sockets.at(-1)?.destroy();
    await until(() => client.closed);
    t.match(received, /^HTTP\/1\.1 200 OK\r\n/);
    t.equal(relay.recordTypes().includes(ALERT), isWhole);
  }
});

t.test('a shutdown does not cut a reply whose last bytes wait for the client', async (t) => {
  const size = 14_000_000;
  let isSent = false;
  const upstream = await startUpstream(t, (_req, res) => {
    res.end(Buffer.alloc(size, 'x'), () => {
      isSent = true;
    });
  });
  const { port, bounds, drain } = await startBareServer(t, {
    origin: upstream.origin,
    handshakes: new Handshakes(readKeyPair({ cert, key }), {
      clock: () => 0,
      perClient: 100,
      onTooFast: () => undefined,
    }),
    replyBufferBytes: 16_777_216,
  });
  const slow = await secured(port, ca);
  slow.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n');
  slow.pause();
  await until(() => isSent && bounds.upstream_connections.held === 0, 'the gateway has the whole reply');
  const silent = sendRaw(port, '');
  await once(silent.socket, 'connect');
  const closed = drain(60_000);
  // It is cut together with the idle connections.
  await silent.ended();
  const reply = await text(slow);
  t.equal(reply.length - reply.indexOf('\r\n\r\n') - 4, size);
  await closed;
});

t.test('a connection without a request is closed without a reply', async (t) => {
  t.equal(await silence, '');
});
