/** The page for operators: its commands and its Redis user work. */
import { join } from 'node:path';
import t from 'tap';
import { codeIn, readPage, tableOf } from '#test/docs/pages.ts';
import { startShell } from '#test/docs/shell.ts';
import { startUpstream } from '#test/support/gateway.ts';
import { freePort } from '#test/support/ports.ts';
import { start } from '#test/support/process.ts';
import { startRedis } from '#test/support/redis.ts';
import { patiently } from '#test/support/store-budget.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';

const page = readPage('docs/operating.md');

const BODIES: Readonly<Record<string, object>> = {
  '/api/explain': { request: 'GET /' },
  '/api/ban': { subject: '192.0.2.7', seconds: 60 },
  '/api/shadow': { policy: 'client-v1-storage', seconds: 1 },
  '/api/unshadow': { policy: 'client-v1-storage' },
  '/api/session': { token: 'a token' },
};
/** The stream is not read here. */
const STREAM = '/api/live';

t.test('a gateway as the page describes it', async (t) => {
  const redis = await startRedis(t);
  const user = page.blocks.find(({ text }) => text.startsWith('ACL SETUSER'))?.text.trim() ?? '';
  const [command = '', ...args] = user.split(' ');
  t.equal(await redis.client.call(command, ...args), 'OK');
  const upstream = await startUpstream(t);
  const [port, adminPort] = [await freePort(), await freePort()];
  const gateway = start([join('gateway', 'main.ts')], {
    GATEWAY_HOST: '127.0.0.1',
    GATEWAY_PORT: String(port),
    GATEWAY_ADMIN_PORT: String(adminPort),
    GATEWAY_ADMIN_TOKEN: 'a token',
    GATEWAY_UPSTREAM: upstream.origin,
    ...patiently({ GATEWAY_REDIS_URL: `redis://floodgate:PASSWORD@127.0.0.1:${redis.port}` }),
  });
  t.teardown(() => gateway.stop());
  await gateway.until(/Gateway ready/);

  const storage = `http://127.0.0.1:${port}/api/v1/client/abc/storage`;
  const statuses: number[] = [];
  for (let i = 0; i < 12; i++) statuses.push((await fetch(storage, { method: 'POST' })).status);
  // Twelve are more than two windows admit, so some are denied at any time.
  t.ok(statuses.includes(200) && statuses.includes(429), 'the Redis user has the needed permissions');

  const routes = tableOf(readPage('test/gateway/operate/admin/routes.md'), 'Route', 'Body').map(
    ([route = '']) => codeIn(route).split(' '),
  );
  t.ok(routes.length > 17);
  for (const [method = '', path = ''] of routes.filter(([, path]) => path !== STREAM)) {
    const isGet = method !== 'POST';
    const target = path.replace('ID', '0'.repeat(26));
    const json = JSON.stringify(BODIES[path] ?? { subject: '192.0.2.7' });
    const reply = await fetch(`http://127.0.0.1:${adminPort}${target}`, {
      method,
      headers: { authorization: 'Bearer a token', ...(isGet ? {} : { 'content-type': 'application/json' }) },
      body: isGet ? null : json,
    });
    const isUnknown = path.includes('/ID');
    const isDone = method === 'DELETE' ? 204 : 200;
    t.equal(reply.status, isUnknown ? 404 : isDone, `${method} ${path}: the Redis user may do it`);
    if (isUnknown) t.match(await reply.json(), { message: /no refusal with the id 0+ is stored/ });
  }

  const shell = startShell(t, temporaryFolder(t), { GATEWAY_ADMIN_TOKEN: 'a token' });
  const [commands] = page.blocks.filter(({ language }) => language === 'sh');
  const output = await shell.run(commands?.text.replaceAll('127.0.0.1:9090', `127.0.0.1:${adminPort}`) ?? '');
  t.match(output, '{"status":"ok"}');
  t.match(output, '{"status":"ready","store":"available"}');
  t.match(output, 'floodgate_store_failures_total{kind="error"} 0');
});
