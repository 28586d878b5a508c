/** Upstream connections are reused while that is safe, and never for a POST that could be repeated. */
import type { Socket } from 'node:net';
import t, { type Test } from 'tap';
import { breakOff, KINDS, type Kind, type SocketServer } from '#test/support/kinds.ts';
import { sendRaw } from '#test/support/raw.ts';
import { until } from '#test/support/until.ts';
import { startBareServer } from './bare-server.ts';
import { send, startRawUpstream } from './exchange.ts';

const REPLY = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok';

/** Answers the first request of a connection, and resets it at the second. */
function startForgetful(t: Test, reply = REPLY, kind: Kind = 'http'): Promise<SocketServer> {
  const answered = new WeakMap<Socket, number>();
  const answer = (socket: Socket, text: string): void => {
    const requests = text.match(/(?:GET|POST) \/ HTTP/g)?.length ?? 0;
    if (requests === answered.get(socket)) return;
    answered.set(socket, requests);
    if (requests > 1) breakOff(socket);
    else socket.write(reply);
  };
  return startRawUpstream(t, answer, kind);
}

for (const kind of KINDS)
  t.test(
    `${kind}: a POST uses no connection that was idle for over a second; a GET may, and is retried`,
    async (t) => {
      const upstream = await startForgetful(t, REPLY, kind);
      const { port } = await startBareServer(t, { origin: upstream.origin, keepAliveMs: 30_000 });
      const idle = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 1100));
      t.equal((await send(port, '/')).status, 200);
      await idle();
      t.equal((await send(port, '/', { method: 'POST', body: 'x' })).status, 200, 'sent on a new connection');
      t.equal(upstream.sockets.length, 2);
      await idle();
      t.equal((await send(port, '/')).status, 200, 'sent again on a new connection');
      t.equal(upstream.sockets.length, 3);
    },
  );

t.test('keeps an idle connection for the configured time', async (t) => {
  const upstream = await startForgetful(t);
  const { port } = await startBareServer(t, { origin: upstream.origin, keepAliveMs: 200 });
  t.equal((await send(port, '/')).status, 200);
  await until(() => upstream.sockets[0]?.destroyed === true, 'closed by the gateway');
});

const UNASKED = 'HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 0\r\n\r\n';

for (const kind of KINDS)
  t.test(
    `${kind}: 408: an upstream gives up waiting at the moment when a request is sent to it`,
    async (t) => {
      const seen: string[] = [];
      const answer = (socket: Socket, text: string): void => {
        const last = text.match(/^\w+ \S+/gm)?.at(-1) ?? '';
        seen.push(last);
        socket.write(last.endsWith('/408') ? UNASKED : REPLY);
      };
      const upstream = await startRawUpstream(t, answer, kind);
      const { port } = await startBareServer(t, { origin: upstream.origin, keepAliveMs: 30_000 });
      const client = sendRaw(port, 'GET /a HTTP/1.1\r\nHost: a\r\n\r\n');
      await client.until(/ok$/);
      // Both are in the kernel before the gateway reads either.
      client.socket.write('GET /b HTTP/1.1\r\nHost: a\r\n\r\n');
      upstream.sockets[0]?.end(UNASKED);
      t.match(await client.until(/ok[\s\S]*\r\n\r\n/), /ok$/, 'sent again on a new connection');
      t.notMatch(client.received(), / 408 /);
      client.socket.destroy();

      t.equal((await send(port, '/408')).status, 408, 'a second 408 is passed on');
      t.same(seen.slice(-2), ['GET /408', 'GET /408']);
      t.equal((await send(port, '/408')).status, 408, 'a 408 on a new connection is passed on');
      t.equal((await send(port, '/')).status, 200);
      t.equal((await send(port, '/408', { method: 'POST', body: 'x' })).status, 408);
      t.same(seen.slice(-3), ['GET /408', 'GET /', 'POST /408'], 'each is sent once');
    },
  );
