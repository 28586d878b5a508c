/** Other clients can upload, whatever one client does with its own uploads. */
import t from 'tap';
import { send } from '#test/gateway/proxy/exchange.ts';
import { startTestGateway, startUpstream } from '#test/support/gateway.ts';
import { sendRaw } from '#test/support/raw.ts';
import { until } from '#test/support/until.ts';

const UPLOADS = 140;
const BODY = Buffer.alloc(100_000, 'x');

const head = (path: string, more = ''): string =>
  `POST ${path} HTTP/1.1\r\nHost: a\r\nContent-Length: 20000000\r\n${more}\r\n`;

t.test('clients that leave after an early reply free their uploads', async (t) => {
  const upstream = await startUpstream(t, (req, res) => {
    req.on('error', () => undefined);
    if (req.url === '/ok') req.resume().on('end', () => res.end('ok'));
    else if (req.url === '/close') res.writeHead(401, { connection: 'close' }).end('who are you?');
    else res.writeHead(413).end('too large for me');
  });
  const { port } = await startTestGateway(t, { upstream });
  for (const [path, more, leave] of [
    ['/early', '', 'end'],
    ['/early', '', 'resetAndDestroy'],
    ['/close', '', 'destroy'],
    ['/early', 'Expect: 100-continue\r\n', 'destroy'],
  ] as const) {
    let left = 0;
    for (let batch = 0; batch < UPLOADS; batch += 20) {
      await Promise.all(
        Array.from({ length: 20 }, async () => {
          const client = sendRaw(port, head(path, more));
          client.socket.on('close', () => left++);
          client.socket.write('x'.repeat(50_000));
          await client.until(/HTTP\/1\.1 4\d\d /);
          client.socket[leave]();
        }),
      );
    }
    await until(() => left >= UPLOADS, 'all have left');
    const others = Array.from({ length: 4 }, () => send(port, '/ok', { method: 'POST', body: BODY }));
    for (const answer of await Promise.all(others)) t.equal(answer.status, 200, `${path} ${more} ${leave}`);
  }
});
