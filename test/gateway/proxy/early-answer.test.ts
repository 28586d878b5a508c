/** Upstreams may reply before they have read the request, and close. The reply reaches the client. */
import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import t from 'tap';
import { type Owner, startTestGateway } from '#test/support/gateway.ts';
import { send, startRawUpstream } from './exchange.ts';

const BODY_20MB = Buffer.alloc(20 * 1024 * 1024, 'x');
const ANSWER =
  'HTTP/1.1 413 Payload Too Large\r\nConnection: close\r\nContent-Type: text/plain\r\nContent-Length: 16\r\n\r\ntoo large for me';

/** Reads the head, and only the part of the body that came with it. */
async function startUpstream(owner: Owner, answer: (socket: Socket) => void): Promise<string> {
  const server = createServer((socket) => {
    socket.on('error', () => socket.destroy());
    socket.once('data', () => {
      socket.pause();
      answer(socket);
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  owner.teardown(() => server.close());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const ways: Record<string, (socket: Socket) => void> = {
  'closes at once': (socket) => void socket.end(ANSWER, () => socket.destroy()),
  'resets the connection': (socket) => void socket.write(ANSWER, () => socket.resetAndDestroy()),
  'closes a little later': (socket) =>
    void socket.write(ANSWER, () => setTimeout(() => socket.destroy(), 20)),
};

for (const [way, answer] of Object.entries(ways)) {
  t.test(`413 to 20 MB from an upstream that ${way}`, async (t) => {
    const origin = await startUpstream(t, answer);
    const { port } = await startTestGateway(t, { upstream: origin });
    const statuses: number[] = [];
    for (let round = 0; round < 30; round++) {
      const reply = await send(port, '/up', { method: 'POST', body: BODY_20MB, pieces: 1024 * 1024 });
      statuses.push(reply.status);
      if (reply.status === 413) t.equal(reply.body.toString(), 'too large for me');
    }
    t.same(
      statuses.filter((status) => status !== 413),
      [],
    );
  });
}

t.test('an upstream that closes without a reply counts as unavailable', async (t) => {
  const origin = await startUpstream(t, (socket) => socket.resetAndDestroy());
  const { port } = await startTestGateway(t, { upstream: origin });
  const { status } = await send(port, '/up', { method: 'POST', body: BODY_20MB.subarray(0, 1024 * 1024) });
  t.equal(status, 502);
});

t.test('ignores an unrequested 100 Continue, in any pieces', async (t) => {
  const INTERIM = 'HTTP/1.1 100 Continue\r\nX: y\r\n\r\n';
  let write = (_socket: Socket): void => undefined;
  const answered = new WeakMap<Socket, number>();
  const upstream = await startRawUpstream(t, (socket, text) => {
    const seen = text.match(/PUT \S+/g)?.length ?? 0;
    if (!text.endsWith('body') || seen === answered.get(socket)) return;
    answered.set(socket, seen);
    write(socket);
  });
  const { port } = await startTestGateway(t, { upstream: upstream.origin });
  const final = 'HTTP/1.1 200 OK\r\nContent-Length: 21\r\n\r\nHTTP/1.1 100 Continue';
  const later = (socket: Socket, pieces: readonly string[]): void => {
    const [piece, ...others] = pieces;
    if (piece === undefined) return;
    socket.write(piece);
    setTimeout(later, 10, socket, others);
  };
  const cases: Record<string, readonly string[]> = {
    'before the reply in one piece': [INTERIM + final],
    'two of them': [INTERIM + INTERIM + final],
    'in a piece of its own': [INTERIM, final],
    'broken up': ['HT', 'TP/1.1 100 Cont', 'inue\r\nX: y\r\n\r', `\n${final.slice(0, 5)}`, final.slice(5)],
    none: [final],
  };
  for (const [name, pieces] of Object.entries(cases)) {
    write = (socket) => later(socket, pieces);
    const { status, body } = await send(port, '/', { method: 'PUT', body: 'body' });
    t.equal(status, 200, name);
    t.equal(body.toString(), 'HTTP/1.1 100 Continue', `${name}: a body may have the same text`);
  }
  t.equal(upstream.sockets.length, 1, 'all requests use one connection');
});
