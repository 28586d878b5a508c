import t from 'tap';
import { policyFile, startTestGateway, startUpstream } from '#test/support/gateway.ts';
import { type RawConnection, sendRaw } from '#test/support/raw.ts';
import { startRedis } from '#test/support/redis.ts';
import { until } from '#test/support/until.ts';
import { startBareServer } from './bare-server.ts';
import { send, startRawUpstream } from './exchange.ts';

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
    env: { GATEWAY_CLIENT_SHARE: '1', GATEWAY_WAITING: '200' },
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

t.test('408: a sender that is silent, or sends a byte now and then', async (t) => {
  const upstream = await startRawUpstream(t, () => undefined);
  const { port } = await startBareServer(t, { origin: upstream.origin, checkMs: 50 });
  const silent = [
    sendRaw(port, head('/a', 'Content-Length: 10')),
    sendRaw(port, `${head('/b', 'Content-Length: 100000')}x`),
    sendRaw(port, `${head('/c', 'Transfer-Encoding: chunked')}1\r\nx\r\n`),
    sendRaw(port, head('/d', 'Content-Length: 100000')),
  ];
  const trickle = setInterval(() => silent[3]?.socket.write('x'), 20);
  t.teardown(() => clearInterval(trickle));
  for (const client of silent) {
    const answer = await client.ended();
    t.match(answer, /^HTTP\/1\.1 408 Request Timeout\r\n[\s\S]*"message":"the request body/);
  }
  await until(() => upstream.sockets.every(({ destroyed }) => destroyed), 'the upstream calls are aborted');
});

t.test('a slow sender, a slow upstream and a reply that has begun do not count as silence', async (t) => {
  const upstream = await startUpstream(t, (req, res) => {
    if (req.url === '/begun') res.writeHead(200).flushHeaders();
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
