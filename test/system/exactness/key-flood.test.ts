/** Many long invented credentials: they cost neither the process nor the store memory. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { policyFile, startUpstream } from '#test/support/gateway.ts';
import { keptConnections, sendOver } from '#test/support/http-send.ts';
import { freePort } from '#test/support/ports.ts';
import { start } from '#test/support/process.ts';
import { startRedis } from '#test/support/redis.ts';
import { patiently } from '#test/support/store-budget.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';
import { insideLongWindow } from '#test/support/window.ts';

const FLOOD = 4000;
const KEY_BYTES = 15_000;

t.test('60 MB of invented keys do not fit into the heap, and do not have to', async (t) => {
  const redis = await startRedis(t);
  let reached = 0;
  const upstream = await startUpstream(t, (_req, res) => {
    reached++;
    res.writeHead(401).end();
  });
  const file = join(temporaryFolder(t), 'policies.yaml');
  writeFileSync(file, policyFile('name: keys, route: "GET /*", identifier: api-key, limit: 5, window: 366d'));
  const port = await freePort();
  const gateway = start(['--max-old-space-size=48', 'gateway/main.ts'], {
    GATEWAY_HOST: '127.0.0.1',
    GATEWAY_PORT: String(port),
    GATEWAY_ADMIN_PORT: '0',
    GATEWAY_UPSTREAM: upstream.origin,
    ...patiently({ GATEWAY_REDIS_URL: redis.url }),
    GATEWAY_POLICIES: file,
  });
  t.teardown(() => gateway.stop());
  await gateway.until(/Gateway ready/);
  await insideLongWindow();

  const agent = keptConnections(16);
  t.teardown(() => agent.destroy());
  const filler = 'x'.repeat(KEY_BYTES);
  const statuses = new Map<number, number>();
  let next = 0;
  const client = async (): Promise<void> => {
    while (next < FLOOD) {
      const headers = { 'x-api-key': `${next++}${filler}` };
      const origin = `http://127.0.0.1:${port}`;
      const { status } = await sendOver(agent, origin, { method: 'GET', path: '/a', headers });
      statuses.set(status, (statuses.get(status) ?? 0) + 1);
    }
  };
  await Promise.all(Array.from({ length: 16 }, client));

  t.equal(reached, 5, 'one limit for all invented keys');
  t.strictSame([...statuses.entries()].sort(), [
    [401, 5],
    [429, FLOOD - 5],
  ]);
  const keys = (await redis.client.keys('*')).filter((key) => !/{(?:control|decisions)}/.test(key));
  t.equal(keys.length, 6, 'five credentials and one address: denied ones are not stored');
});
