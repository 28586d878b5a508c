/**
 * Tests bodies in small pieces over HTTP/1.1: they are joined, charged, and the connection is cut if there are too
 * many.
 */
import t from 'tap';
import type { Gateway } from '#gateway/app.ts';
import { startBareServer } from '#test/gateway/proxy/bare-server.ts';
import { startTestAdmin } from '#test/support/admin.ts';
import { policyFile, startTestGateway, startUpstream } from '#test/support/gateway.ts';
import { sendRaw } from '#test/support/raw.ts';
import { until } from '#test/support/until.ts';

const MANY = 60_000;
/** A body with this many pieces is checked, and needs this average. */
const PIECES = 1000;
const AVERAGE_BYTES = 64;
const TOO_FEW_BYTES = 48;

const head = (path: string, more = ''): string =>
  `POST ${path} HTTP/1.1\r\nHost: a\r\n${more}Transfer-Encoding: chunked\r\n\r\n`;
const chunks = (count: number, bytes = 1): string =>
  `${bytes.toString(16)}\r\n${'x'.repeat(bytes)}\r\n`.repeat(count);
const END = '0\r\n\r\n';

const CUTS = ['floodgate_connections_cut_total', { reason: 'small pieces' }] as const;

t.test('408: 60,000 chunks of one byte, while another client is served', async (t) => {
  let bytes = 0;
  let ended = 0;
  const upstream = await startUpstream(t, (req, res) => {
    req.on('error', () => undefined);
    req.on('data', (chunk: Buffer) => {
      bytes += chunk.length;
    });
    req.on('end', () => {
      if (req.method === 'POST') ended++;
      res.end('ok');
    });
  });
  const { port, sample } = await startTestGateway(t, { upstream: upstream.origin });
  const hostile = sendRaw(port, head('/up') + chunks(MANY) + END);
  const other = sendRaw(port, 'GET /x HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n', '127.0.0.9');
  t.match(await other.ended(), /^HTTP\/1\.1 200 OK/);
  t.ok(bytes <= PIECES, `${bytes} bytes were forwarded before the other client was answered`);
  const answer = await hostile.ended();
  t.match(answer, /^HTTP\/1\.1 408 Request Timeout\r\n[\s\S]*"message":"the request body comes in too small/);
  t.equal(answer.match(/HTTP\/1\.1/g)?.length, 1, 'there is one reply');
  t.equal(sample(...CUTS), 1);
  t.ok(bytes <= PIECES, `${bytes} bytes were forwarded`);
  t.equal(ended, 0, 'the upstream never gets a whole body');
});

t.test('refuses more than 1,000 pieces below 64 bytes on average, also in later requests', async (t) => {
  const upstream = await startUpstream(t, (req, res) => {
    req.on('error', () => undefined);
    req.resume().on('end', () => res.end('whole'));
  });
  const { port } = await startBareServer(t, { origin: upstream.origin });
  let clients = 1;
  const statusOf = async (body: string): Promise<string> => {
    const text = head('/up', 'Connection: close\r\n') + body;
    const client = sendRaw(port, text, `127.0.0.${++clients}`);
    return (await client.ended()).slice(9, 12);
  };
  t.equal(await statusOf(chunks(PIECES - 1) + END), '200', 'fewer pieces are accepted');
  t.equal(await statusOf(chunks(PIECES) + END), '408');
  t.equal(await statusOf(chunks(PIECES, AVERAGE_BYTES) + END), '200');
  t.equal(await statusOf(chunks(PIECES, TOO_FEW_BYTES) + END), '408');
  t.equal(await statusOf(chunks(2 * PIECES, AVERAGE_BYTES) + END), '200');
  t.equal(await statusOf(chunks(1, 100_000) + chunks(PIECES) + END), '200', 'a high average is accepted');
  t.equal(await statusOf(chunks(PIECES, AVERAGE_BYTES) + chunks(PIECES) + END), '408', 'the average of all');
});

t.test('forwards a single piece at once, before the next one is sent', async (t) => {
  const upstream = await startUpstream(t, (req, res) => {
    res.writeHead(200, { 'content-type': 'text/plain' }).flushHeaders();
    req.on('data', (chunk: Buffer) => res.write(chunk.toString().toUpperCase()));
    req.on('end', () => res.end('!'));
  });
  const { port } = await startBareServer(t, { origin: upstream.origin });
  const client = sendRaw(port, head('/echo'));
  for (const letter of 'abcdefghij') {
    client.socket.write(`1\r\n${letter}\r\n`);
    await client.until(new RegExp(letter.toUpperCase()));
  }
  client.socket.write(END);
  await client.until(/!/);
  client.socket.destroy();
});

t.test('cuts a body that is only discarded, after a 429 and after an early reply', async (t) => {
  const upstream = await startUpstream(t, (_req, res) => res.end('early'));
  const { port, sample } = await startTestGateway(t, {
    upstream: upstream.origin,
    policies: policyFile('name: no, route: POST /denied, identifier: ip, limit: 1, window: 366d'),
    env: { GATEWAY_TRUSTED_PROXIES: 'loopback' },
  });
  await sendRaw(port, `${head('/denied', 'Connection: close\r\n')}${END}`).ended();
  for (const [path, status, count] of [
    ['/denied', /^HTTP\/1\.1 429 /, 1],
    ['/early', /^HTTP\/1\.1 200 /, 2],
  ] as const) {
    const client = sendRaw(port, `${head(path)}1\r\nx\r\n`);
    await client.until(path === '/denied' ? /\}$/ : /early/);
    client.socket.write(`${chunks(MANY)}${END}GET /next HTTP/1.1\r\nHost: a\r\n\r\n`);
    const answer = await client.ended();
    t.match(answer, status);
    t.equal(answer.match(/HTTP\/1\.1/g)?.length, 1, 'nothing behind the body is answered');
    t.equal(sample(...CUTS), count);
  }
});

t.test('408: the admin listener refuses a body in small pieces', async (t) => {
  const upstream = await startUpstream(t);
  const admin = await startTestAdmin(t, await startTestGateway(t, { upstream: upstream.origin }));
  const fields = 'Content-Type: application/json\r\n';
  const text = head('/api/ban', fields).replace('Host: a', 'Host: localhost');
  const client = sendRaw(Number(new URL(admin).port), text + chunks(MANY));
  t.match(await client.ended(), /^HTTP\/1\.1 408 /);
});

t.test('refuses new connections of a client that sends them fast, for a moment', async (t) => {
  const upstream = await startUpstream(t, (req, res) => {
    req.on('error', () => undefined);
    req.resume().on('end', () => res.end('ok'));
  });
  const { port, clients } = await startBareServer(t, { origin: upstream.origin, penaltyMs: 60_000 });
  t.match(await sendRaw(port, head('/up') + chunks(MANY)).ended(), /^HTTP\/1\.1 408 /);
  t.equal(await sendRaw(port, 'GET / HTTP/1.1\r\nHost: a\r\n\r\n').ended(), '');
  t.equal(clients.size, 1, 'the client is remembered until then');
  const other = sendRaw(port, 'GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n', '127.0.0.9');
  t.match(await other.ended(), /^HTTP\/1\.1 200 /);
});

for (const [way, GATEWAY_OWN_PARSER] of [
  ['own parser', '1'],
  ['node:http', '0'],
] as const) {
  const env = { GATEWAY_OWN_PARSER };
  const lengthHead = (length: number): string =>
    `POST /up HTTP/1.1\r\nHost: a\r\nContent-Length: ${length}\r\n\r\n`;

  t.test(`${way}: a body with a length, each piece in its own read`, async (t) => {
    let received = 0;
    let onData = (): void => undefined;
    const upstream = await startUpstream(t, (req, res) => {
      received = 0;
      req.on('error', () => undefined);
      req.on('data', (chunk: Buffer) => {
        received += chunk.length;
        onData();
      });
      req.on('end', () => res.end('whole'));
    });
    const { port, gateway, sample } = await startTestGateway(t, { upstream: upstream.origin, env });
    /** Sends a piece when the application has the previous one, so no two are read together. */
    const sendPieces = async (pieces: number, bytes: number, length: number) => {
      const client = sendRaw(port, lengthHead(length));
      for (let sent = 0; sent < pieces * bytes; ) {
        sent += bytes;
        const arrived = new Promise<void>((resolve) => {
          onData = () => void (received === sent && resolve());
        });
        client.socket.write('x'.repeat(bytes));
        await arrived;
      }
      return client;
    };
    const usual = await sendPieces(PIECES + 100, AVERAGE_BYTES, (PIECES + 100) * AVERAGE_BYTES);
    t.match(await usual.until(/whole$/), /^HTTP\/1\.1 200 OK/);
    usual.socket.destroy();
    const mended = await sendPieces(PIECES - 1, 1, 100_000);
    mended.socket.write('x'.repeat(100_001 - PIECES));
    t.match(
      await mended.until(/whole$/),
      /^HTTP\/1\.1 200 OK/,
      'fewer pieces and a high average are accepted',
    );
    mended.socket.destroy();
    t.equal(sample(...CUTS), 0);

    const tiny = await sendPieces(PIECES - 1, 1, 1_000_000);
    tiny.socket.write('x');
    t.match(await tiny.ended(), /^HTTP\/1\.1 408 Request Timeout\r\n[\s\S]*too small pieces/);
    t.equal(received, PIECES - 1, 'the last piece is not forwarded');
    t.equal(sample(...CUTS), 1);
    await until(() => heldBy(gateway) === 0, 'everything is given back');
  });
}

function heldBy(gateway: Gateway): number {
  const held = gateway.samples().filter(({ name }) => name === 'floodgate_held');
  return held.reduce((sum, { value }) => sum + value, 0);
}
