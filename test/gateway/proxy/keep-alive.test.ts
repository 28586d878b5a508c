/** Upstream connections are reused while that is safe, and never for a POST that could be repeated. */
import type { Socket } from 'node:net';
import t from 'tap';
import { until } from '#test/support/until.ts';
import { startBareServer } from './bare-server.ts';
import { type RawUpstream, send, startRawUpstream } from './exchange.ts';

const REPLY = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok';

/** Answers the first request of a connection, and resets it at the second. */
function startForgetful(t: Parameters<typeof startRawUpstream>[0], reply = REPLY): Promise<RawUpstream> {
  const answered = new WeakMap<Socket, number>();
  return startRawUpstream(t, (socket, text) => {
    const requests = text.match(/(?:GET|POST) \/ HTTP/g)?.length ?? 0;
    if (requests === answered.get(socket)) return;
    answered.set(socket, requests);
    if (requests > 1) socket.resetAndDestroy();
    else socket.write(reply);
  });
}

t.test(
  'a POST takes no connection that was idle for more than a second; a GET may, and is tried again',
  async (t) => {
    const upstream = await startForgetful(t);
    const { port } = await startBareServer(t, { origin: upstream.origin, keepAliveMs: 30_000 });
    const idle = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 1100));
    t.equal((await send(port, '/')).status, 200);
    await idle();
    t.equal((await send(port, '/', { method: 'POST', body: 'x' })).status, 200, 'on a connection of its own');
    t.equal(upstream.sockets.length, 2);
    await idle();
    t.equal((await send(port, '/')).status, 200, 'at the second attempt');
    t.equal(upstream.sockets.length, 3);
  },
);

t.test('an idle connection is closed ahead of the time that the upstream announced', async (t) => {
  const upstream = await startForgetful(t, REPLY.replace('\r\n\r\n', '\r\nKeep-Alive: timeout=2\r\n\r\n'));
  const { port } = await startBareServer(t, { origin: upstream.origin, keepAliveMs: 30_000 });
  const begin = performance.now();
  t.equal((await send(port, '/')).status, 200);
  await until(() => upstream.sockets[0]?.destroyed === true, 'closed by the gateway');
  t.ok(performance.now() - begin > 900, 'not at once');
});

t.test('an idle connection is kept for the time of the setting where nothing is announced', async (t) => {
  const upstream = await startForgetful(t);
  const { port } = await startBareServer(t, { origin: upstream.origin, keepAliveMs: 200 });
  t.equal((await send(port, '/')).status, 200);
  await until(() => upstream.sockets[0]?.destroyed === true, 'closed by the gateway');
});
