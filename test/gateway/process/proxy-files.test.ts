/** With several workers, all use an edited file of trusted proxies, and doctor sees one that is refused. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { send } from '#test/gateway/proxy/exchange.ts';
import { floodgateCommand } from '#test/support/cli.ts';
import { policyFile, startUpstream } from '#test/support/gateway.ts';
import { environment, eventually, launch } from '#test/support/gateway-process.ts';
import { startRedis } from '#test/support/redis.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';
import { until } from '#test/support/until.ts';

t.test('workers and supervisor read the file again', async (t) => {
  const folder = temporaryFolder(t);
  const file = join(folder, 'proxies.txt');
  writeFileSync(file, '10.0.0.0/8\n');
  const policies = join(folder, 'policies.yaml');
  writeFileSync(policies, policyFile('name: all, route: "GET /*", identifier: ip, limit: 1, window: 366d'));
  const env = await environment({
    GATEWAY_UPSTREAM: (await startUpstream(t)).origin,
    GATEWAY_POLICIES: policies,
    GATEWAY_REDIS_URL: (await startRedis(t)).url,
    GATEWAY_WORKERS: '2',
    GATEWAY_TRUSTED_PROXIES: file,
  });
  const gateway = await launch(t, env);
  const told = (words: RegExp): number => gateway.output().split(words).length - 1;

  writeFileSync(file, '127.0.0.0/8\n');
  await until(() => told(/edited file of trusted proxies is in use/) === 2, 'both workers use the file');
  for (let client = 1; client <= 12; client++) {
    const headers = { 'x-forwarded-for': `192.0.2.${client}` };
    t.equal((await send(Number(env.GATEWAY_PORT), '/a', { headers })).status, 200, 'on every connection');
  }

  writeFileSync(file, '127.0.0.0/8\nx\n');
  await until(() => told(/edited file of trusted proxies is refused/) === 2, 'both workers refuse it');
  const doctor = ['doctor', '--gateway', `http://127.0.0.1:${env.GATEWAY_ADMIN_PORT}`];
  const { stdout } = await eventually(
    'the supervisor has read it too',
    () => floodgateCommand(doctor),
    ({ stdout }) => stdout.includes('refused'),
  );
  t.match(stdout, /trusted-proxies +wrong +a changed file .* is refused, .*proxies\.txt:2: "x"/);
});
