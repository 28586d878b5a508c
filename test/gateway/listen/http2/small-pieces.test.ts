/** Tests bodies in small frames over HTTP/2: they are joined, and the stream is cut if there are too many. */
import { readFileSync } from 'node:fs';
import { connect, constants } from 'node:http2';
import t from 'tap';
import { createAuthority } from '#test/support/certificates.ts';
import { type Owner, policyFile, startTestGateway, startUpstream } from '#test/support/gateway.ts';
import { beginFramed, type FramedRequest } from '#test/support/http2-frames.ts';
import { secured } from '#test/support/tls-client.ts';
import { until } from '#test/support/until.ts';

const MANY = 60_000;
const PIECES = 1000;
const AVERAGE_BYTES = 64;
const TOO_FEW_BYTES = 48;

const authority = createAuthority(t);
const files = authority.issue('server', 'IP:127.0.0.1');
const env = { GATEWAY_TLS_CERT: files.cert, GATEWAY_TLS_KEY: files.key, GATEWAY_HTTP2: '1' };
const policies = policyFile('name: no, route: POST /denied, identifier: ip, limit: 1, window: 366d');

interface Seen {
  bytes: number;
  pieces: number;
  whole: number;
}

async function start(owner: Owner) {
  const seen: Seen = { bytes: 0, pieces: 0, whole: 0 };
  const upstream = await startUpstream(owner, (req, res) => {
    req.on('error', () => undefined);
    req.on('data', (chunk: Buffer) => {
      seen.bytes += chunk.length;
      seen.pieces++;
    });
    req.on('end', () => {
      seen.whole++;
      res.end('ok');
    });
  });
  const { port } = await startTestGateway(owner, { upstream: upstream.origin, policies, env });
  const begin = async (path: string): Promise<FramedRequest> => {
    const socket = await secured(port, authority.ca, { ALPNProtocols: ['h2'] });
    owner.teardown(() => socket.destroy());
    return beginFramed(socket, path);
  };
  return { seen, begin, port };
}

t.test('408: 60,000 frames of one byte', async (t) => {
  const { seen, begin } = await start(t);
  const request = await begin('/up');
  request.send(MANY, 1);
  request.end();
  t.equal(await request.status, 408);
  t.ok(seen.bytes <= PIECES, `${seen.bytes} bytes were forwarded`);
  t.equal(seen.whole, 0, 'the upstream never gets a whole body');
});

t.test('refuses more than 1,000 frames below 64 bytes on average', async (t) => {
  const { begin } = await start(t);
  for (const [frames, size, status] of [
    [PIECES - 1, 1, 200],
    [PIECES, 1, 408],
    [PIECES, AVERAGE_BYTES, 200],
    [PIECES, TOO_FEW_BYTES, 408],
  ] as const) {
    const request = await begin('/up');
    request.send(frames, size);
    request.end();
    t.equal(await request.status, status, `${frames} of ${size} bytes`);
  }
});

t.test('forwards small frames that arrive together in one piece', async (t) => {
  const { seen, begin } = await start(t);
  const request = await begin('/up');
  request.send(PIECES - 1, 1);
  request.end();
  t.equal(await request.status, 200);
  t.equal(seen.bytes, PIECES - 1);
  t.ok(seen.pieces <= 20, `${seen.pieces} pieces`);
});

t.test('cuts a body that is only discarded, after a 429', async (t) => {
  const { seen, begin } = await start(t);
  const first = await begin('/denied');
  first.end();
  t.equal(await first.status, 200);
  const request = await begin('/denied');
  request.send(MANY, 1);
  // Which of the two comes first depends on how the frames arrive.
  t.ok([408, 429].includes(await request.status));
  t.equal(seen.bytes, 0);
});

t.test('a client may not repeat a stream that is cut when the application has a part of it', async (t) => {
  const { seen, port } = await start(t);
  const session = connect(`https://127.0.0.1:${port}`, { ca: readFileSync(authority.ca) });
  t.teardown(() => session.destroy());
  const stream = session.request({ ':method': 'POST', ':path': '/up' });
  stream.on('error', () => undefined);
  stream.write('x');
  await until(() => seen.bytes === 1, 'the application has a part');
  const flood = await secured(port, authority.ca);
  flood.on('error', () => undefined);
  const head = 'POST /up HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n';
  flood.end(head + '1\r\nx\r\n'.repeat(MANY));
  await new Promise((resolve) => stream.once('close', resolve));
  t.not(stream.rstCode, constants.NGHTTP2_REFUSED_STREAM);
  t.not(stream.rstCode, constants.NGHTTP2_NO_ERROR);
});
