/** An idle connection keeps nothing of its last request and reply, so thousands of them take little memory. */
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import t from 'tap';
import { startBareServer } from '#test/gateway/proxy/bare-server.ts';
import { startUpstream } from '#test/support/gateway.ts';
import { type RawConnection, sendRaw } from '#test/support/raw.ts';
import { until } from '#test/support/until.ts';

setFlagsFromString('--expose-gc');
const collectGarbage: () => void = runInNewContext('gc');

const BODY_BYTES = 15_000;
const CONNECTIONS = 100;
const BODIES_BYTES = 2 * BODY_BYTES * CONNECTIONS;

function memoryInUse(): number {
  collectGarbage();
  return process.memoryUsage().arrayBuffers;
}

for (const [parser, version] of [
  ['our parser', 'HTTP/1.1'],
  ['node:http', 'HTTP/1.0'],
] as const)
  t.test(`${parser}: the bodies of a request and its reply are gone soon after both`, async (t) => {
    const upstream = await startUpstream(t, (req, res) => {
      req.resume().on('end', () => res.end('r'.repeat(BODY_BYTES)));
    });
    const { port } = await startBareServer(t, { origin: upstream.origin, checkMs: 20 });
    const before = memoryInUse();
    const clients: RawConnection[] = [];
    t.teardown(() => {
      for (const { socket } of clients) socket.destroy();
    });
    const head = `POST / ${version}\r\nHost: a\r\nConnection: keep-alive\r\nContent-Length: ${BODY_BYTES}`;
    for (let i = 0; i < CONNECTIONS; i++) {
      const client = sendRaw(port, `${head}\r\n\r\n${'x'.repeat(BODY_BYTES)}`);
      clients.push(client);
      await client.until(/r{15000}$/);
    }
    await until(() => memoryInUse() - before < BODIES_BYTES / 10, 'the memory of all bodies');
    t.ok(clients.every(({ socket }) => !socket.destroyed));
  });
