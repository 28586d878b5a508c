import t from 'tap';
import { policyFile, startTestGateway, startUpstream } from '#test/support/gateway.ts';
import { startSockets } from '#test/support/kinds.ts';
import { type RawConnection, sendRaw } from '#test/support/raw.ts';
import { startRedis } from '#test/support/redis.ts';
import { until } from '#test/support/until.ts';
import { startBareServer } from './bare-server.ts';
import { send } from './exchange.ts';

const head = (path: string, more: string): string => `POST ${path} HTTP/1.1\r\nHost: a\r\n${more}\r\n\r\n`;

t.test('hundreds of uploads that never arrive leave room for others', async (t) => {
  let requests = 0;
  const upstream = await startUpstream(t, (req, res) => {
    requests++;
    req.on('error', () => undefined);
    req.resume().on('end', () => res.end('ok'));
  });
  const { port } = await startTestGateway(t, {
    upstream,
    env: { GATEWAY_CLIENT_SHARE: '1', GATEWAY_WAITING: '2000' },
  });
  const clients: RawConnection[] = [];
  t.teardown(() => {
    for (const { socket } of clients) socket.destroy();
  });
  for (let i = 0; i < 280; i++) {
    clients.push(sendRaw(port, `${head('/big', 'Content-Length: 100000')}x`));
    clients.push(sendRaw(port, `${head('/small', 'Content-Length: 10')}x`));
  }
  await until(() => requests >= 128, 'the uploads that have their turn');
  t.equal((await send(port, '/ok')).status, 200, 'without a body');
  t.equal((await send(port, '/ok', { method: 'POST', body: 'small' })).status, 200, 'with a small body');
  t.equal(requests, 130, 'the other uploads wait, and unfinished bodies hold no connection');
  clients[1]?.socket.write('234567890');
  await clients[1]?.until(/ok$/);

  const last = clients.at(-2);
  last?.socket.write('x'.repeat(99_999));
  for (const client of clients.slice(0, -2)) client.socket.destroy();
  t.match(await last?.until(/ok$/), /^HTTP\/1\.1 200 OK/, 'a waiting upload continues when others leave');
});

t.test('a small body in pieces arrives whole, whether the store answers before or after it', async (t) => {
  const redis = await startRedis(t);
  const policies = policyFile('name: up, route: POST /up, identifier: ip, limit: 100, window: 366d');
  for (const env of [{}, { GATEWAY_REDIS_URL: redis.url }]) {
    const { port } = await startTestGateway(t, { policies, env });
    for (const pause of [0, 1, 5, 50]) {
      if ('GATEWAY_REDIS_URL' in env) await redis.client.call('CLIENT', 'PAUSE', '25', 'ALL');
      const client = sendRaw(port, `${head('/up', 'Content-Length: 10')}1`);
      client.socket.setNoDelay();
      for (const piece of ['234', '567890']) {
        await new Promise((resolve) => setTimeout(resolve, pause));
        client.socket.write(piece);
      }
      t.match(await client.until(/\}$/), /"body":"1234567890"/, `${Object.keys(env)} ${pause} ms`);
      client.socket.destroy();
    }
  }
});

t.test('a slow sender, a slow upstream and a reply that flows do not count as silence', async (t) => {
  const upstream = await startUpstream(t, (req, res) => {
    if (req.url === '/begun') {
      const timer = setInterval(() => res.write('.'), 50);
      req.on('close', () => clearInterval(timer));
    }
    if (req.url !== '/late') req.resume();
    else setTimeout(() => req.resume(), 1000);
    req.on('end', () => res.end('done'));
  });
  const { port } = await startBareServer(t, { origin: upstream.origin, checkMs: 50 });
  const begun = sendRaw(port, `${head('/begun', 'Transfer-Encoding: chunked')}1\r\nx\r\n`);
  await begun.until(/200 OK/);
  const late = sendRaw(port, head('/late', 'Content-Length: 9000000') + 'x'.repeat(9_000_000));
  const slow = sendRaw(port, head('/slow', 'Content-Length: 327680'));
  for (let sent = 0; sent < 20; sent++) {
    slow.socket.write('x'.repeat(16_384));
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  begun.socket.write('0\r\n\r\n');
  for (const client of [slow, late, begun]) t.match(await client.until(/done/), /200 OK/);
  for (const { socket } of [slow, late, begun]) socket.destroy();
});

for (const [framing, piece] of [
  ['Content-Length: 100000000', 'x'.repeat(65_536)],
  ['Transfer-Encoding: chunked', `10000\r\n${'x'.repeat(65_536)}\r\n`],
] as const)
  t.test(`an upstream that reads nothing stops the client: ${framing}`, async (t) => {
    const upstream = await startSockets(t, 'http', (socket) => void socket.pause());
    const { port, bounds, clients } = await startBareServer(t, { origin: upstream.origin });
    const { socket } = sendRaw(port, head('/up', framing));
    let sent = 0;
    const write = (): void => {
      sent += piece.length;
      if (sent < 100_000_000) socket.write(piece, write);
    };
    write();
    await until(() => sent > 1_000_000);
    for (let before = -1; before !== sent; ) {
      before = sent;
      await new Promise((resolve) => setTimeout(resolve, 150));
    }
    t.ok(sent < 40_000_000, `${sent} bytes, which fit into the buffers of the kernel`);
    t.equal(bounds.uploads.held, 1);
    socket.destroy();
    for (const connection of upstream.sockets) connection.destroy();
    await until(() => bounds.uploads.held === 0 && clients.size === 0, 'everything is given back');
  });

t.test('504: an upload of which the upstream reads nothing more is given up', async (t) => {
  const upstream = await startSockets(t, 'http', (socket) => void socket.pause());
  const { port, bounds, clients } = await startBareServer(t, { origin: upstream.origin, timeoutMs: 300 });
  const { received, socket, until: replied } = sendRaw(port, head('/up', 'Content-Length: 100000000'));
  const piece = Buffer.alloc(1_000_000, 'x');
  const write = (): void => void socket.write(piece, (error) => error ?? write());
  write();
  await replied(/\}$/);
  t.match(received(), /^HTTP\/1\.1 504 /);
  t.equal(bounds.uploads.held, 0);
  await until(() => clients.size === 0, 'everything is given back, although the client goes on sending');
});
