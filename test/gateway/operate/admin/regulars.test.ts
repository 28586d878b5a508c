/** `inspect` and `reset` of an address tell and delete its days, also if policies count larger networks. */
import t, { type Test } from 'tap';
import { send } from '#test/gateway/proxy/exchange.ts';
import { startTestAdmin } from '#test/support/admin.ts';
import { floodgateCommand } from '#test/support/cli.ts';
import { BEHIND_PROXY, startTestGateway } from '#test/support/gateway.ts';
import { startRedis } from '#test/support/redis.ts';
import { until } from '#test/support/until.ts';

const FILE = `version: 1
identifiers: { site: { source: client-address, ipv4Prefix: 24, ipv6Prefix: 48 } }
policies:
  - name: site
    route: GET /*
    identifier: site
    limit: 20
    window: 366d
    newcomers: { limit: 5, window: 366d }
`;

async function start(t: Test, env: Record<string, string> = {}) {
  const gateway = await startTestGateway(t, { policies: FILE, env: { ...BEHIND_PROXY, ...env } });
  const admin = await startTestAdmin(t, gateway);
  return {
    visit: (from: string) => send(gateway.port, '/', { headers: { 'x-forwarded-for': from } }),
    ask: async (...args: string[]): Promise<string> =>
      (await floodgateCommand([...args, '--gateway', admin])).stdout,
  };
}

for (const store of ['memory', 'Redis'])
  t.test(`${store}: a client in a network that is counted as one`, async (t) => {
    const env = store === 'memory' ? {} : { GATEWAY_REDIS_URL: (await startRedis(t)).url };
    const { visit, ask } = await start(t, env);
    for (const address of ['203.0.113.7', '2001:db8:1:2::3']) {
      t.match(await ask('inspect', address), /a newcomer\n/);
      await visit(address);
      await until(async () => /a newcomer \(here on 1 day, first on/.test(await ask('inspect', address)));
      t.match(await ask('reset', address), /./);
      t.match(await ask('inspect', address), /a newcomer\n/, 'the day is forgotten');
    }
  });
