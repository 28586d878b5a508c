/**
 * node:http drops what it has read together with the end of a request that offers another protocol, for instance the
 * next request. java.net.http offers HTTP/2 in each request. Its next request can arrive together with the end of a
 * body only if the reply was early, so such a reply closes the connection, and the client uses a new one.
 */
import { once } from 'node:events';
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import t from 'tap';
import { startRawUpstream } from '#test/gateway/proxy/exchange.ts';
import { startTestGateway } from '#test/support/gateway.ts';

const OFFER = 'Connection: Upgrade\r\nUpgrade: h2c\r\n';
const EARLY = 'HTTP/1.1 307 Temporary Redirect\r\nLocation: /b\r\nContent-Length: 0\r\n\r\n';
const REFUSING = `version: 1
identifiers: { ip: { source: client-address } }
policies: [{ name: one, route: "* *", identifier: ip, limit: 1, window: 1h }]
`;

/** Sends a body whose end arrives together with the next request. @returns everything that the gateway sent */
async function sendTwo(port: number, fields: string): Promise<string> {
  const socket = connect(port, '127.0.0.1');
  const received = text(socket);
  socket.write(`PUT /a HTTP/1.1\r\nHost: a\r\n${fields}Content-Length: 40000\r\n\r\n${'a'.repeat(30_000)}`);
  await once(socket, 'data');
  socket.write(`${'a'.repeat(10_000)}GET /b HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`);
  return received;
}

const statusesIn = (replies: string): string[] => replies.match(/(?<=HTTP\/1\.1 )\d+/g) ?? [];

t.test('an early reply of the application', async (t) => {
  const upstream = await startRawUpstream(t, (socket, request) => {
    if (request.startsWith('PUT') && !request.includes('GET')) {
      if (socket.bytesWritten === 0) socket.write(EARLY);
    } else socket.end('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n');
  });
  const { port } = await startTestGateway(t, { upstream });
  const offered = await sendTwo(port, OFFER);
  t.strictSame(statusesIn(offered), ['307']);
  t.match(offered, /^connection: close\r$/im, 'the client knows that it has to use a new connection');
  const plain = await sendTwo(port, '');
  t.strictSame(statusesIn(plain), ['307', '200']);
});

t.test('a refusal', async (t) => {
  const { port, origin } = await startTestGateway(t, { policies: REFUSING });
  await (await fetch(origin)).text();
  const offered = await sendTwo(port, OFFER);
  t.strictSame(statusesIn(offered), ['429']);
  t.match(offered, /^connection: close\r$/im);
  t.strictSame(statusesIn(await sendTwo(port, '')), ['429', '429']);
});

t.test('a request without a body keeps its connection', async (t) => {
  const { port } = await startTestGateway(t, { policies: REFUSING });
  const socket = connect(port, '127.0.0.1');
  t.teardown(() => socket.destroy());
  for (const status of [200, 429, 429]) {
    socket.write(`GET /a HTTP/1.1\r\nHost: a\r\n${OFFER}Content-Length: 0\r\n\r\n`);
    const [reply] = (await once(socket, 'data')) as [Buffer];
    t.match(reply.toString(), new RegExp(`^HTTP/1.1 ${status} [^]*^connection: keep-alive`, 'im'));
  }
});
