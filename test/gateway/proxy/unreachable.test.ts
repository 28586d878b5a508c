/** If no connection to the upstream can be made, every client gets an error, and the process goes on. */
import { createServer } from 'node:net';
import t from 'tap';
import { listen } from '#test/support/listen.ts';
import { freePort } from '#test/support/ports.ts';
import { until } from '#test/support/until.ts';
import { startBareServer } from './bare-server.ts';
import { send } from './exchange.ts';

t.test('waiting requests get an error when no connection can be opened', async (t) => {
  const { port, bounds, clients } = await startBareServer(t, {
    origin: `http://127.0.0.1:${await freePort()}`,
    bounds: { upstream_connections: { total: 1 }, uploads: { total: 1 } },
  });
  const bodies = [undefined, 'small', Buffer.alloc(40_000)];
  const answers = await Promise.all(
    Array.from({ length: 9 }, (_, i) => {
      const body = bodies[i % 3];
      return send(port, '/', body === undefined ? {} : { method: 'POST', body });
    }),
  );
  t.same(
    answers.map(({ status }) => status),
    Array(9).fill(502),
  );
  t.equal(bounds.upstream_connections.held + bounds.uploads.held + bounds.waiting.held, 0);
  await until(() => clients.size === 0, 'nobody is remembered');
});

t.test('502: sends a GET once to an upstream that resets new connections', async (t) => {
  let connections = 0;
  const server = createServer((socket) => {
    connections++;
    socket.on('error', () => socket.destroy());
    socket.once('data', () => socket.resetAndDestroy());
  });
  const upstreamPort = await listen(t, server);
  const { port } = await startBareServer(t, { origin: `https://127.0.0.1:${upstreamPort}` });
  t.equal((await send(port, '/')).status, 502);
  t.equal(connections, 1);
});
