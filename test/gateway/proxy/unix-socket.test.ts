/** Tests an application on a Unix socket: requests, bodies, protocol switches, and a socket that does not exist. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import { join } from 'node:path';
import t from 'tap';
import { readConfig } from '#gateway/config.ts';
import { sendRaw } from '#test/support/raw.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';
import { startBareServer } from './bare-server.ts';
import { send } from './exchange.ts';

t.test('forwards requests, bodies and protocol switches', async (t) => {
  const path = join(temporaryFolder(t), 'app.sock');
  const application = createServer((req, res) => {
    res.setHeader('x-host', req.headers.host ?? '');
    req.pipe(res);
  });
  application.on('upgrade', (_req, socket) => {
    socket.write(
      'HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\nhello;',
    );
    socket.pipe(socket);
  });
  application.listen(path);
  await once(application, 'listening');
  t.teardown(() => {
    application.closeAllConnections();
    application.close();
  });
  const { port } = await startBareServer(t, { origin: `unix:${path}` });
  const body = 'x'.repeat(100_000);
  for (let round = 0; round < 3; round++) {
    const reply = await send(port, '/', { method: 'POST', body, headers: { host: 'app.test' } });
    t.equal(reply.status, 200);
    t.equal(reply.body.toString(), body);
    t.equal(reply.headers['x-host'], 'app.test');
  }
  t.match(
    await sendRaw(port, 'GET / HTTP/1.0\r\n\r\n').ended(),
    `x-host: 127.0.0.1:${port}\r\n`,
    'a request without Host gets one',
  );
  const upgraded = sendRaw(
    port,
    'GET /ws HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nping',
  );
  t.match(await upgraded.until(/hello;ping$/), /^HTTP\/1\.1 101/);
  upgraded.socket.destroy();
});

t.test('502: nothing listens on the socket', async (t) => {
  const { port } = await startBareServer(t, { origin: `unix:${join(temporaryFolder(t), 'none.sock')}` });
  t.equal((await send(port, '/')).status, 502);
});

t.test('reads the path of a Unix socket, and refuses malformed ones', async (t) => {
  const upstream = (value: string): string => readConfig({ GATEWAY_UPSTREAM: value }).config.upstream;
  t.equal(upstream('unix:/run/app.sock'), 'unix:/run/app.sock');
  t.equal(upstream('unix:///run/app.sock'), 'unix:/run/app.sock');
  for (const wrong of [
    'unix:run/app.sock',
    'unix://host/run/app.sock',
    'unix:/run/app.sock?x=1',
    'unix:/',
    `unix:/${'a'.repeat(108)}`,
  ])
    t.throws(() => upstream(wrong), /GATEWAY_UPSTREAM.*unix:\/run\/app\.sock/s, wrong);
});
