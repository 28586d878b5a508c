/** Plans from a file: limits of keys and addresses on two gateways, without a proxy in front. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { Digester } from '#gateway/identity/digest.ts';
import { send } from '#test/gateway/proxy/exchange.ts';
import { startTestAdmin } from '#test/support/admin.ts';
import { floodgateCommand } from '#test/support/cli.ts';
import { BEHIND_PROXY, policyFile, startTestGateway, startUpstream } from '#test/support/gateway.ts';
import { startRedis } from '#test/support/redis.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';
import { insideLongWindow } from '#test/support/window.ts';

const SALT = 'salt of the plans';
const digest = new Digester(SALT).identify(
  { name: 'api-key', kind: 'credential', sources: [] },
  'customer',
).digest;

t.test('a key and an address get the limits of their plans', async (t) => {
  const upstream = await startUpstream(t, (_, res) => res.writeHead(404).end());
  const redis = await startRedis(t);
  const folder = temporaryFolder(t);
  const gold = 'overrides: [{ for: { plan: gold }, limit: 4 }]';
  writeFileSync(
    join(folder, 'policies.yaml'),
    `plan: { header: x-plan }\nplans: { file: plans.txt }\n${policyFile(
      `name: keys, route: "GET /keys", identifier: api-key, limit: 2, window: 366d, ${gold}`,
      `name: all, route: "GET /all", identifier: ip, limit: 1, window: 366d, ${gold}`,
    )}`,
  );
  writeFileSync(join(folder, 'plans.txt'), `${digest} gold\n192.0.2.0/24 gold\n`);
  const env = {
    ...BEHIND_PROXY,
    GATEWAY_POLICIES: join(folder, 'policies.yaml'),
    GATEWAY_REDIS_URL: redis.url,
    GATEWAY_IDENTITY_SECRET: SALT,
  };
  const start = () => startTestGateway(t, { upstream, env });
  const [one, two] = await Promise.all([start(), start()]);
  await insideLongWindow();
  const passed = async (times: number, path: string, headers: Record<string, string>) => {
    const ports = Array.from({ length: times }, (_, i) => (i % 2 === 0 ? one.port : two.port));
    const replies = await Promise.all(ports.map((port) => send(port, path, { headers })));
    return replies.filter(({ status }) => status === 404).length;
  };
  const from = (address: string) => ({ 'x-forwarded-for': address });
  t.equal(await passed(9, '/keys', { ...from('10.0.0.1'), 'x-api-key': 'other' }), 2);
  t.equal(
    await passed(9, '/keys', { ...from('10.0.0.1'), 'x-api-key': 'customer' }),
    4,
    'a key in the file counts as proven, so other keys of its address do not matter',
  );
  t.equal(
    await passed(9, '/all', { ...from('10.0.0.1'), 'x-api-key': 'customer' }),
    1,
    'the policy does not count keys',
  );
  t.equal(await passed(9, '/all', from('192.0.2.1')), 4, 'a network has its plan');
  t.equal(
    await passed(9, '/all', { ...from('192.0.2.2'), 'x-plan': 'free' }),
    1,
    'the plan that the proxy sends takes precedence',
  );

  const admin = await startTestAdmin(t, one);
  const { stdout } = await floodgateCommand(['digest', 'customer', '--gateway', admin]);
  t.equal(stdout, `${digest}\n`);

  writeFileSync(join(folder, 'plans.txt'), '192.0.2.0/24 silver\n198.51.100.7 gold\n');
  for (const { logged } of [one, two]) await logged(/the edited policy file is in use/);
  t.equal(await passed(9, '/all', from('192.0.2.3')), 1, 'the edited file applies');
  t.equal(await passed(9, '/all', from('198.51.100.7')), 4);
});
