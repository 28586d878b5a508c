/** Connections that arrive together are accepted within a few ticks, and none is lost when the listener closes. */
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import t from 'tap';
import { Listener } from '#gateway/listen/listener.ts';
import type { Owner } from '#test/support/gateway.ts';
import { freePort } from '#test/support/ports.ts';

const HOST = '127.0.0.1';

function listener(owner: Owner): { one: Listener; accepted: Socket[] } {
  const accepted: Socket[] = [];
  const one = new Listener((socket) => {
    socket.on('error', () => socket.destroy());
    accepted.push(socket);
  });
  owner.teardown(() => {
    for (const socket of accepted) socket.destroy();
    return one.close();
  });
  return { one, accepted };
}

function connectMany(owner: Owner, port: number, count: number): readonly Socket[] {
  const sockets = Array.from({ length: count }, () => connect(port, HOST).on('error', () => undefined));
  owner.teardown(() => {
    for (const socket of sockets) socket.destroy();
  });
  return sockets;
}

const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

t.test('accepts 100 concurrent connections in far fewer than 100 ticks', async (t) => {
  const { one, accepted } = listener(t);
  const port = await one.listen({ host: HOST, port: 0, reusePort: false });
  connectMany(t, port, 100);
  let turns = 0;
  for (; accepted.length < 100 && turns < 100; turns++) await nextTurn();
  t.equal(accepted.length, 100);
  t.ok(turns <= 50, `${turns} turns: the kernel spreads them over several queues`);
});

t.test('accepts what the kernel has queued before it stops accepting', async (t) => {
  const { one, accepted } = listener(t);
  const port = await one.listen({ host: HOST, port: 0, reusePort: false });
  const sockets = connectMany(t, port, 60);
  await one.emptyQueue();
  t.equal(accepted.length, 60);
  const closed = one.close();
  await Promise.all(sockets.map((socket) => (socket.connecting ? once(socket, 'connect') : null)));
  for (const socket of accepted) socket.destroy();
  await closed;
  const late = connect(port, HOST);
  const [error] = (await once(late, 'error')) as [NodeJS.ErrnoException];
  t.equal(error.code, 'ECONNREFUSED');
});

t.test('reports a port that is in use, whoever uses it', async (t) => {
  const taken = createServer().listen(0, HOST);
  t.teardown(() => taken.close());
  await once(taken, 'listening');
  const { port } = taken.address() as AddressInfo;
  await t.rejects(listener(t).one.listen({ host: HOST, port, reusePort: false }), { code: 'EADDRINUSE' });

  const other = await freePort();
  await listener(t).one.listen({ host: HOST, port: other, reusePort: false });
  await t.rejects(
    listener(t).one.listen({ host: HOST, port: other, reusePort: false }),
    { code: 'EADDRINUSE', port: other },
    'another gateway is refused too, unless both share the port',
  );
});

t.test('with port sharing, two processes listen on one port', async (t) => {
  const port = await freePort();
  const [a, b] = [listener(t), listener(t)];
  t.equal(await a.one.listen({ host: HOST, port, reusePort: true }), port);
  t.equal(await b.one.listen({ host: HOST, port, reusePort: true }), port);
});
