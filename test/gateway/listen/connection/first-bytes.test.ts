import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { setImmediate as turn } from 'node:timers/promises';
import t from 'tap';
import { readFirstBytes } from '#gateway/listen/connection/first-bytes.ts';
import { busyFor } from '#test/support/busy.ts';
import { sendRaw } from '#test/support/raw.ts';
import { until } from '#test/support/until.ts';

t.test('bytes that have arrived when the time is over are read', async (t) => {
  const found: string[] = [];
  let opened = 0;
  const server = createServer((socket) => {
    opened++;
    readFirstBytes(
      socket,
      1500,
      () => 0,
      (result) => {
        found.push(result);
        socket.destroy();
      },
    );
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(() => server.close());
  const { port } = server.address() as AddressInfo;
  const [speaking, silent] = [sendRaw(port, ''), sendRaw(port, '')];
  await Promise.all([once(speaking.socket, 'connect'), until(() => opened === 2)]);
  // Now timers are next, and then sockets are read.
  await turn();
  speaking.socket.write('x');
  busyFor(2000);
  await Promise.all([speaking.ended(), silent.ended()]);
  t.same(found.sort(), ['good', 'late']);
});
