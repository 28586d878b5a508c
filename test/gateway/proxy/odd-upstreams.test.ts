/** Tests upstreams that close without a reply, or whose reply cannot be forwarded. */
import t from 'tap';
import { startBareServer } from './bare-server.ts';
import { send, startRawUpstream } from './exchange.ts';

const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok';
const messageOf = (body: Buffer): string => JSON.parse(body.toString()).message;

t.test('retries a GET when a kept-alive connection closes, but not on a new connection', async (t) => {
  const seen: string[] = [];
  let isClosing = false;
  const upstream = await startRawUpstream(t, (socket, text) => {
    seen.push(text.match(/GET \S+/g)?.at(-1) ?? '');
    if (isClosing) socket.destroy();
    else socket.write(OK);
  });
  const { port } = await startBareServer(t, { origin: upstream.origin });
  isClosing = true;
  t.equal((await send(port, '/fresh')).status, 502);
  t.same(seen, ['GET /fresh'], 'sent once');
  isClosing = false;
  t.equal((await send(port, '/warm')).status, 200);
  isClosing = true;
  t.equal((await send(port, '/kept')).status, 502);
  t.same(seen.slice(2), ['GET /kept', 'GET /kept'], 'sent on the kept-alive connection, then on a new one');
});

t.test('502: a reply with a header section over 16 KiB has its own message', async (t) => {
  let bytes = 0;
  const upstream = await startRawUpstream(t, (socket) => {
    socket.write(`HTTP/1.1 200 OK\r\nX-Long: ${'x'.repeat(bytes)}\r\nContent-Length: 2\r\n\r\nok`);
  });
  const { port } = await startBareServer(t, { origin: upstream.origin });
  bytes = 15_000;
  t.equal((await send(port, '/')).status, 200);
  bytes = 17_000;
  const { status, body } = await send(port, '/');
  t.equal(status, 502);
  t.match(messageOf(body), /header section of the upstream's reply is larger than 16 KiB/);
});

t.test('502: a reply with another transfer coding than chunked', async (t) => {
  let coding = '';
  const upstream = await startRawUpstream(t, (socket) => {
    socket.write(`HTTP/1.1 200 OK\r\n${coding}\r\n\r\n2\r\nok\r\n0\r\n\r\n`);
  });
  const { port } = await startBareServer(t, { origin: upstream.origin });
  for (coding of [
    'Transfer-Encoding: gzip, chunked',
    'Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked',
  ]) {
    const { status, body } = await send(port, '/');
    t.equal(status, 502, coding);
    t.match(messageOf(body), /transfer coding/);
  }
  for (coding of ['Transfer-Encoding: chunked', 'Transfer-Encoding: Chunked ']) {
    const { status, body } = await send(port, '/');
    t.equal(status, 200, coding);
    t.equal(body.toString(), 'ok');
  }
});
