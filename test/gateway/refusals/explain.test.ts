/** Tests that the access log explains refusals that are not stored. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { startTestAdmin } from '#test/support/admin.ts';
import { floodgateCommand } from '#test/support/cli.ts';
import { policyFile, startTestGateway } from '#test/support/gateway.ts';
import { startRedis } from '#test/support/redis.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';
import { until } from '#test/support/until.ts';

t.test('a refusal that is not stored has a line in the access log, and why says so', async (t) => {
  const redis = await startRedis(t);
  const folder = temporaryFolder(t);
  const log = join(folder, 'access.log');
  const policies = policyFile('name: one, route: "GET /*", identifier: ip, limit: 1, window: 366d');
  const env = { GATEWAY_REDIS_URL: redis.url, GATEWAY_ACCESS_LOG: log };
  const gateway = await startTestGateway(t, { policies, env });
  const admin = await startTestAdmin(t, gateway);
  await fetch(`${gateway.origin}/a`);
  const id = (await fetch(`${gateway.origin}/a`)).headers.get('x-gateway-decision') ?? '';
  await until(() =>
    readFileSync(log, 'utf8')
      .split('\n')
      .slice(0, -1)
      .some((line) => line.includes(id)),
  );
  await until(async () => (await redis.client.hlen('fg:{decisions}:records')) === 1);
  await redis.client.del('fg:{decisions}:records', 'fg:{decisions}:order');
  t.match(await floodgateCommand(['why', id, '--gateway', admin]), {
    code: 1,
    stderr: /no refusal .* is stored: .* the line of the access log with this id has more/,
  });
});
