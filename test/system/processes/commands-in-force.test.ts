/** Tests that commands of operators are in force in all workers before they return. */
import { get } from 'node:http';
import t from 'tap';
import { policyFile, startUpstream } from '#test/support/gateway.ts';
import { startGatewayProcess } from '#test/support/gateway-process.ts';
import { startRedis } from '#test/support/redis.ts';
import { insideLongWindow, LONG_WINDOW } from '#test/support/window.ts';

const LIMIT = 20;

t.test('with several workers, a command is in force in each of them', async (t) => {
  await insideLongWindow();
  const upstream = await startUpstream(t);
  const redis = await startRedis(t);
  const row = `name: one, route: GET /x, identifier: ip, limit: ${LIMIT}, window: ${LONG_WINDOW}`;
  const env = { GATEWAY_UPSTREAM: upstream.origin, GATEWAY_REDIS_URL: redis.url, GATEWAY_WORKERS: '3' };
  const { port, admin } = await startGatewayProcess(t, env, policyFile(row));
  /** Each request has a connection of its own, so all workers get some. */
  const status = (): Promise<number> =>
    new Promise((resolve, reject) => {
      get({ port, host: '127.0.0.1', path: '/x', agent: false }, (response) => {
        response.resume().on('end', () => resolve(response.statusCode ?? 0));
      }).on('error', reject);
    });
  const statuses = async (): Promise<number[]> => {
    const seen: number[] = [];
    for (let i = 0; i < LIMIT; i++) seen.push(await status());
    return seen;
  };
  const command = async (path: string, more: object = {}): Promise<void> => {
    const response = await fetch(`${admin}/api/${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ subject: '127.0.0.1', kind: 'address', ...more }),
    });
    t.equal(response.status, 200, await response.text());
  };
  const all = (status: number): number[] => Array.from({ length: LIMIT }, () => status);

  await statuses();
  for (let i = 0; i < 5; i++) {
    t.strictSame(await statuses(), all(429), 'the workers know that the counter is exhausted');
    await command('reset');
    t.strictSame(await statuses(), all(200), 'reset');
  }
  await command('reset');
  await command('ban', { seconds: 3600 });
  t.strictSame(await statuses(), all(429), 'ban');
  await command('unban');
  t.strictSame(await statuses(), all(200), 'unban');
});
