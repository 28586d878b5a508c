/** Tests that the access log explains refusals that are not stored. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import t from 'tap';
import { startTestAdmin } from '#test/support/admin.ts';
import { floodgateCommand } from '#test/support/cli.ts';
import { policyFile, startTestGateway } from '#test/support/gateway.ts';
import { freePort } from '#test/support/ports.ts';
import { startRedis } from '#test/support/redis.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';
import { until } from '#test/support/until.ts';

t.test('--log adds the line of the access log, also without the gateway', async (t) => {
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
    stderr: /no refusal .* is stored/,
  });
  const packed = join(folder, 'access.log.1.gz');
  writeFileSync(packed, gzipSync(readFileSync(log)));

  const away = `http://127.0.0.1:${await freePort()}`;
  for (const asked of [admin, away]) {
    const why = ['why', id, '--gateway', asked, '--log', packed];
    t.match(JSON.parse((await floodgateCommand([...why, '--json'])).stdout), {
      log: { id, method: 'GET', path: '/a', status: 429, policy: 'one' },
    });
    t.match(await floodgateCommand(why), { code: 0, stdout: /The access log has:[\s\S]*path: \/a/ });
  }
  t.match(await floodgateCommand(['why', '0'.repeat(26), '--gateway', away, '--log', log]), {
    code: 1,
    stderr: /has no line with the id/,
  });
  t.match(await floodgateCommand(['why', id, '--gateway', away, '--log', join(folder, 'none')]), { code: 3 });
  t.match(await floodgateCommand(['why', id, '--gateway', away]), { code: 3 });
});
