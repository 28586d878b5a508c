/** Tests HTTP/2: the same decisions and bounds as with HTTP/1.1, and floods that only HTTP/2 allows. */
import { readFileSync } from 'node:fs';
import {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  connect,
  constants,
  type OutgoingHttpHeaders,
} from 'node:http2';
import { connect as tcp } from 'node:net';
import { connect as tls } from 'node:tls';
import t from 'tap';
import { readConfig } from '#gateway/config.ts';
import type { OpenSessions } from '#gateway/listen/entrance.ts';
import { FrameShare } from '#gateway/listen/http2/frame-share.ts';
import { Http2Sessions } from '#gateway/listen/http2/sessions.ts';
import { Handshakes } from '#gateway/listen/tls/handshakes.ts';
import { readKeyPair } from '#gateway/listen/tls/key-pair.ts';
import { type BareServerOptions, startBareServer } from '#test/gateway/proxy/bare-server.ts';
import { values } from '#test/gateway/proxy/exchange.ts';
import { createAuthority } from '#test/support/certificates.ts';
import { type Owner, policyFile, startTestGateway, startUpstream } from '#test/support/gateway.ts';
import { partsIn } from '#test/support/parts.ts';
import { secured, sendTls } from '#test/support/tls-client.ts';
import { until } from '#test/support/until.ts';
import { startSlow } from '#test/support/upstreams.ts';

const authority = createAuthority(t);
const { ca } = authority;
const files = authority.issue('server', 'IP:127.0.0.1');
const HTTP2 = { GATEWAY_TLS_CERT: files.cert, GATEWAY_TLS_KEY: files.key, GATEWAY_HTTP2: '1' };

async function bare(
  owner: Owner,
  options: Omit<BareServerOptions, 'handshakes'>,
  frames = new FrameShare({ onFlood: () => undefined }),
) {
  const handshakes = new Handshakes(readKeyPair(files), { protocols: ['h2', 'http/1.1'] });
  const openSessions: OpenSessions = (events) => new Http2Sessions({ ...events, frames });
  const server = await startBareServer(owner, { ...options, openSessions, handshakes });
  return { ...server, floods: () => frames.floods };
}

function session(owner: Owner, port: number): ClientHttp2Session {
  const one = connect(`https://127.0.0.1:${port}`, { ca: readFileSync(ca) });
  one.on('error', () => undefined);
  owner.teardown(() => one.destroy());
  return one;
}

interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, unknown>>;
  readonly body: string;
}

function read(stream: ClientHttp2Stream): Promise<Answer> {
  return new Promise((resolve, reject) => {
    let headers: Record<string, unknown> = {};
    let body = '';
    stream.on('response', (received) => {
      headers = { ...received };
    });
    stream.on('data', (chunk: Buffer) => {
      body += chunk.toString('latin1');
    });
    stream.on('end', () => resolve({ status: Number(headers[':status']), headers, body }));
    stream.on('error', reject);
    stream.on('close', () => reject(new Error(`closed with ${stream.rstCode}`)));
  });
}

function ask(
  one: ClientHttp2Session,
  path: string,
  headers: OutgoingHttpHeaders = {},
  body?: string,
): Promise<Answer> {
  const stream = one.request({ ':path': path, ...headers }, { endStream: body === undefined });
  if (body !== undefined) stream.end(body);
  return read(stream);
}

t.test('requests and replies of every size and kind pass', async (t) => {
  const upstream = await startUpstream(t, (req, res) => {
    const chunks: Buffer[] = [];
    req.on('data', (chunk: Buffer) => chunks.push(chunk));
    req.on('end', () => {
      if (req.url === '/none') return res.writeHead(204).end();
      res.setHeader('set-cookie', ['a=1', 'b=2']);
      res.setHeader('x-length', Buffer.concat(chunks).length);
      return res.end(JSON.stringify({ method: req.method, url: req.url, headers: req.rawHeaders }));
    });
  });
  const { port } = await startTestGateway(t, { upstream: upstream.origin, env: HTTP2 });
  const one = session(t, port);
  const answer = await ask(one, '/a?b=%20', { cookie: ['x=1', 'y=2'], 'x-own': 'value' });
  t.equal(answer.status, 200);
  const seen = JSON.parse(answer.body);
  t.match(seen, { method: 'GET', url: '/a?b=%20' });
  t.strictSame(values(seen.headers, 'x-forwarded-proto'), ['https']);
  t.strictSame(values(seen.headers, 'x-forwarded-for'), ['127.0.0.1']);
  t.strictSame(values(seen.headers, 'host'), [`127.0.0.1:${port}`]);
  t.strictSame(values(seen.headers, 'cookie'), ['x=1; y=2']);
  t.strictSame(values(seen.headers, 'x-own'), ['value']);
  t.strictSame(answer.headers['set-cookie'], ['a=1', 'b=2']);
  const large = 'x'.repeat(3_000_000);
  t.equal((await ask(one, '/up', { ':method': 'POST' }, large)).headers['x-length'], String(large.length));
  const known = { ':method': 'PUT', 'content-length': '5' };
  t.equal((await ask(one, '/up', known, 'hello')).headers['x-length'], '5');
  const waiting = { ':method': 'POST', expect: '100-continue' };
  t.equal((await ask(one, '/up', waiting, 'hello')).headers['x-length'], '5');
  t.match(await ask(one, '/a', { ':method': 'HEAD' }), { status: 200, body: '' });
  t.match(await ask(one, '/none'), { status: 204, body: '' });
  t.equal((await sendTls(port, '/one', ca)).status, 200, 'HTTP/1.1 is served too');
});

t.test('a reply that is read late arrives whole, although its internal connection has ended', async (t) => {
  const sizes = Array.from({ length: 40 }, (_, i) => 10_000 * (i + 1));
  const upstream = await startUpstream(t, (req, res) =>
    res.end(Buffer.alloc(Number(req.url?.slice(1)), 'y')),
  );
  const { port } = await bare(t, { origin: upstream.origin });
  const one = session(t, port);
  for (const size of sizes) {
    const stream = one.request({ ':path': `/${size}` });
    stream.pause();
    await new Promise((resolve) => stream.once('response', resolve));
    // After these ticks nothing more could be lost.
    for (let i = 0; i < 100; i++) await new Promise((resolve) => setImmediate(resolve));
    const late = read(stream);
    stream.resume();
    t.equal((await late).body.length, size);
  }
});

t.test('100 concurrent streams are admitted exactly like connections', async (t) => {
  const upstream = await startUpstream(t, (_req, res) => res.end());
  const { port } = await startTestGateway(t, {
    upstream: upstream.origin,
    env: HTTP2,
    policies: policyFile(
      'name: all, route: "*  /*", identifier: ip, limit: 37, window: 366d'.replace('*  ', 'GET,POST '),
    ),
  });
  const one = session(t, port);
  const answers = await Promise.all(Array.from({ length: 100 }, () => ask(one, '/a')));
  t.equal(answers.filter(({ status }) => status === 200).length, 37);
  t.equal(answers.filter(({ status }) => status === 429).length, 63);
  const denied = await ask(one, '/a', { ':method': 'POST' }, 'x'.repeat(500_000));
  t.equal(denied.status, 429, 'denied before the body arrives');
  t.match(denied.body, /gateway_rate_limited/);
});

t.test('refuses requests that HTTP/1.1 could not carry, and never reads a body as a request', async (t) => {
  const urls: string[] = [];
  const upstream = await startUpstream(t, (req, res) => {
    urls.push(req.url ?? '');
    req.resume().on('end', () => res.end('ok'));
  });
  const { port } = await startTestGateway(t, { upstream: upstream.origin, env: HTTP2 });
  const one = session(t, port);
  await t.rejects(ask(one, '/a b'), 'the library below does not let it in');
  t.equal((await ask(one, '/a%00b')).status, 400);
  for (const host of ['a:b', 'a%2'])
    t.equal((await ask(one, '/a', { ':authority': host })).status, 400, host);
  for (const method of [{ ':method': 'TRACE' }, { ':method': 'CONNECT', ':authority': 'db:5432' }])
    t.match(await read(one.request(method).end()), { status: 405, headers: { allow: /GET/ } });
  t.equal(
    (await ask(one, '/a', Object.fromEntries(Array.from({ length: 129 }, (_, i) => [`x-${i}`, 'y'])))).status,
    431,
  );
  const hidden = 'GET /hidden HTTP/1.1\r\nHost: a\r\n\r\n';
  t.equal((await ask(one, '/get', { ':method': 'GET' }, hidden)).status, 200);
  t.equal((await ask(one, '/delete', { ':method': 'DELETE' }, hidden)).status, 200);
  t.strictSame(urls, ['/get', '/delete']);
});

t.test('streams count as connections of their client', async (t) => {
  const upstream = await startUpstream(t, () => undefined);
  const { port, bounds, clients } = await bare(t, {
    origin: upstream.origin,
    bounds: { connections: { perClient: 4 } },
  });
  const one = session(t, port);
  const held = [1, 2, 3].map(() => one.request({ ':path': '/hangs' }));
  for (const stream of held) stream.on('error', () => undefined);
  await until(() => bounds.connections.held === 4, 'a connection and three streams');
  const refused = await ask(one, '/a');
  t.equal(refused.status, 429);
  t.match(refused.body, /"details":\{"bound":"connections","scope":"client"\}/);
  t.equal(refused.headers['retry-after'], '1');
  one.destroy();
  await until(() => bounds.connections.held === 0 && clients.size === 0, 'all is given back');
});

t.test('resetting a stream ends the call to the application', async (t) => {
  let open = 0;
  const upstream = await startUpstream(t, (req) => {
    open++;
    req.socket.once('close', () => open--);
  });
  const { port, bounds } = await bare(t, { origin: upstream.origin });
  const stream = session(t, port).request({ ':path': '/hangs' });
  await until(() => open === 1, 'it is with the application');
  stream.close(constants.NGHTTP2_CANCEL);
  await until(() => open === 0 && bounds.upstream_connections.held === 0, 'given up');
});

t.test('cuts a client that opens streams to reset them, and serves others', async (t) => {
  const upstream = await startUpstream(t, (_req, res) => setTimeout(() => res.end('ok'), 20));
  const { port, bounds, clients } = await bare(t, { origin: upstream.origin });
  const hostile = session(t, port);
  let isClosed = false;
  hostile.on('close', () => {
    isClosed = true;
  });
  let sent = 0;
  while (!isClosed && sent < 100_000) {
    for (let i = 0; i < 50 && !hostile.destroyed && !hostile.closed; i++, sent++) {
      const stream = hostile.request({ ':path': '/a' });
      stream.on('error', () => undefined);
      stream.close(constants.NGHTTP2_CANCEL);
    }
    if (hostile.closed) hostile.destroy();
    await new Promise((resolve) => setImmediate(resolve));
  }
  t.ok(sent < 20_000, `after ${sent} streams`);
  t.equal((await ask(session(t, port), '/a')).status, 200);
  await until(() => bounds.upstream_connections.held === 0 && bounds.waiting.held === 0, 'nothing is held');
  await until(() => clients.size <= 1, 'the flood is forgotten');
});

t.test('cuts a client that does not read its reply', async (t) => {
  let isCut = false;
  const upstream = await startUpstream(t, (_req, res) => {
    res.on('close', () => {
      isCut = true;
    });
    res.end(Buffer.alloc(20_000_000));
  });
  const { port, bounds } = await bare(t, { origin: upstream.origin, unreadTimeoutMs: 200, checkMs: 50 });
  const stream = session(t, port).request({ ':path': '/big' });
  stream.on('error', () => undefined).pause();
  await until(() => bounds.unread_replies.held === 1 || isCut, 'it is noticed');
  await until(() => bounds.upstream_connections.held === 0 && bounds.unread_replies.held === 0, 'and cut');
});

t.test('a shutdown lets streams end, and accepts no new ones', async (t) => {
  const upstream = await startSlow(t);
  const { port, gateway } = await startTestGateway(t, {
    upstream: upstream.origin,
    env: { ...HTTP2, GATEWAY_DRAIN_TIMEOUT_MS: '60000' },
  });
  const [busy, idle] = [session(t, port), session(t, port)];
  await new Promise((resolve) => idle.once('connect', resolve));
  const pending = ask(busy, '/a');
  await until(() => upstream.arrived() === 1, 'the request is with the application');
  const closed = gateway.close();
  t.equal((await pending).body, 'whole');
  await closed;
});

t.test('a shutdown also ends connections whose handshake was not done when it began', async (t) => {
  const upstream = await startUpstream(t);
  let isSecured = false;
  while (!isSecured) {
    const { port, gateway } = await startTestGateway(t, {
      upstream: upstream.origin,
      env: { ...HTTP2, GATEWAY_DRAIN_TIMEOUT_MS: '5000' },
    });
    const socket = tcp(port, '127.0.0.1');
    await new Promise((resolve) => socket.once('connect', resolve));
    const closed = gateway.close();
    const late = connect(`https://127.0.0.1:${port}`, {
      createConnection: () => tls({ socket, host: '127.0.0.1', ca: readFileSync(ca), ALPNProtocols: ['h2'] }),
    });
    const events: string[] = [];
    late.on('error', () => events.push('error'));
    late.on('goaway', (code) => events.push(`goaway ${code}`));
    late.once('connect', () => {
      isSecured = true;
    });
    await Promise.all([closed, new Promise((resolve) => late.once('close', resolve))]);
    // A handshake that takes half a second is cut.
    if (isSecured) t.same(events, ['goaway 0']);
  }
});

t.test('it needs TLS, and is off unless asked for', async (t) => {
  t.notOk(partsIn({}).includes('http2'));
  t.throws(() => readConfig({ GATEWAY_HTTP2: '1' }), /GATEWAY_HTTP2: it needs GATEWAY_TLS_CERT/);
});

/** Builds a frame (RFC 9113 4.1). */
function frame(type: number, payload: Buffer, stream = 0): Buffer {
  const head = Buffer.alloc(9);
  head.writeUIntBE(payload.length, 0, 3);
  head[3] = type;
  head.writeUInt32BE(stream, 5);
  return Buffer.concat([head, payload]);
}

const SETTINGS = frame(4, Buffer.alloc(0));
/** nghttp2 itself cuts clients that send thousands of pings, settings, priorities or unknown frames. */
const WINDOW_UPDATE = frame(8, Buffer.from([0, 0, 0, 1]));

t.test('cuts a flood of WINDOW_UPDATE frames, and serves others', async (t) => {
  const upstream = await startUpstream(t, (_req, res) => res.end('ok'));
  const { port, bounds, clients, floods } = await bare(t, { origin: upstream.origin });
  const from = { localAddress: '127.0.0.7', ALPNProtocols: ['h2'] };
  const hostile = await secured(port, ca, from);
  hostile.on('error', () => undefined).resume();
  hostile.write(`PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n`);
  hostile.write(SETTINGS);
  const block = Buffer.concat(Array.from({ length: 5000 }, () => WINDOW_UPDATE));
  let sent = 0;
  while (!hostile.destroyed && sent < 500_000_000) {
    sent += block.length;
    await new Promise((resolve) => hostile.write(block, resolve));
  }
  t.ok(sent < 500_000_000, `${sent} bytes`);
  t.equal(floods(), 1);
  t.equal((await ask(session(t, port), '/a')).status, 200, 'another address is served');
  await until(() => bounds.connections.held === 1 && clients.size === 1, 'what it held is given back');
});

t.test('refuses a client that was cut for a while, and then serves it', async (t) => {
  const upstream = await startUpstream(t, (_req, res) => res.end('ok'));
  const frames = new FrameShare({ onFlood: () => undefined, penaltyMs: 200 });
  const { port } = await bare(t, { origin: upstream.origin }, frames);
  let isCut = false;
  const count = frames.begin('127.0.0.1', {
    read: () => 5_000_000,
    cut: () => {
      isCut = true;
    },
  });
  await until(() => isCut, 'it is cut');
  count.end();
  await t.rejects(sendTls(port, '/a', ca));
  await until(() => !frames.isPenalized('127.0.0.1'), 'it may come again');
  t.equal((await sendTls(port, '/a', ca)).status, 200);
});

t.test('charges a client that closes before the request is read', async (t) => {
  const frames = new FrameShare({ onFlood: () => undefined });
  for (let i = 0; i < 30; i++) frames.begin('127.0.0.1', { read: () => 100_000, cut: () => undefined }).end();
  await until(() => frames.isPenalized('127.0.0.1'), 'thirty short connections');
  t.equal(frames.floods, 1);
});

t.test('large bodies and many requests do not count as a flood', async (t) => {
  const upstream = await startUpstream(t);
  const { port, floods } = await bare(t, { origin: upstream.origin });
  const one = session(t, port);
  const body = 'x'.repeat(20_000_000);
  t.equal((await ask(one, '/upload', { ':method': 'POST' }, body)).body.includes('xxx'), true);
  for (let i = 0; i < 40; i++) {
    const replies = await Promise.all(
      Array.from({ length: 50 }, () => ask(one, '/a', { long: 'y'.repeat(3000) })),
    );
    t.ok(replies.every(({ status }) => status === 200));
  }
  t.equal(floods(), 0);
});

t.test('a client that floods and reads nothing loses its connection', async (t) => {
  const upstream = await startUpstream(t, (_req, res) => res.end(Buffer.alloc(20_000_000)));
  const { port, bounds, clients } = await bare(t, { origin: upstream.origin });
  const hostile = await secured(port, ca, { ALPNProtocols: ['h2'] });
  hostile.on('error', () => undefined);
  t.teardown(() => hostile.destroy());
  hostile.write('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n');
  const windowBytes = Buffer.from([0x3f, 0xff, 0xff, 0xff]);
  hostile.write(frame(4, Buffer.concat([Buffer.from([0, 4]), windowBytes])));
  hostile.write(frame(8, Buffer.from([0x3f, 0, 0, 0])));
  // GET https://a/ (RFC 7541 6.1, 6.2.1), the end of its header section and of the stream.
  const request = frame(1, Buffer.from([0x82, 0x87, 0x84, 0x41, 1, 0x61]), 1);
  request[4] = 0x5;
  hostile.write(request);
  await until(() => bounds.unread_replies.held === 1, 'the reply waits for its reader');
  // Each request gets a reply. The session ends when 1,000 replies wait, and node:http2 then waits for the client to
  // read them.
  const pings = Buffer.concat(Array.from({ length: 5000 }, () => frame(6, Buffer.alloc(8))));
  hostile.write(pings);
  await until(() => bounds.connections.held === 0 && clients.size === 0, 'all is given back');
});
