/** Networks with names on running gateways: the limit of a provider, and a file that is renewed. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { send } from '#test/gateway/proxy/exchange.ts';
import { BEHIND_PROXY, startUpstream } from '#test/support/gateway.ts';
import { onEachStore } from '#test/support/stores.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';
import { insideLongWindow } from '#test/support/window.ts';

const FILE = `version: 1
identifiers:
  provider: { source: [{ network: networks.txt }] }
policies:
  - { name: providers, route: "GET /*", identifier: provider, limit: 6, window: 366d }
`;

t.test('the addresses of a provider share its limit, also after the file has changed', async (t) => {
  const upstream = await startUpstream(t, (_, res) => res.writeHead(200).end());
  await insideLongWindow();
  const folder = temporaryFolder(t);
  const networks = join(folder, 'networks.txt');
  writeFileSync(join(folder, 'policies.yaml'), FILE);
  const env = { ...BEHIND_PROXY, GATEWAY_POLICIES: join(folder, 'policies.yaml') };
  const options = () => {
    writeFileSync(networks, '203.0.113.0/24 AS64500\n203.0.113.128/25 AS64501\n2001:db8::/32 AS64500\n');
    return { upstream, env };
  };
  await onEachStore(t, options, async (t, one, two) => {
    let asked = 0;
    const passed = async (addresses: readonly string[]): Promise<number> => {
      const statuses = await Promise.all(
        addresses.map(async (from) => {
          const { port } = asked++ % 2 === 0 ? one : two;
          const headers = { 'x-forwarded-for': from, 'x-provider': `AS${asked}` };
          return (await send(port, '/', { headers })).status;
        }),
      );
      return statuses.filter((status) => status === 200).length;
    };
    const addresses = (prefix: string, count: number) =>
      Array.from({ length: count }, (_, i) => `${prefix}${i + 1}`);

    t.equal(await passed(addresses('203.0.113.', 10)), 6, 'of ten addresses together');
    t.equal(await passed(addresses('2001:db8:7::', 3)), 0, 'its IPv6 addresses too');
    t.equal(await passed(addresses('203.0.113.20', 9)), 6, 'the longer prefix has another name');
    t.equal(await passed(addresses('192.0.2.', 20)), 20, 'in no network');
    t.equal(await passed(Array.from({ length: 9 }, () => 'garbage')), 9, 'an unreadable address has no name');

    writeFileSync(networks, '203.0.113.0/24 AS64502\n192.0.2.0/24 AS64500\n');
    for (const gateway of new Set([one, two])) await gateway.logged(/the edited policy file is in use/);
    t.equal(await passed(addresses('192.0.2.', 9)), 0, 'the name has used its limit');
    t.equal(await passed(addresses('203.0.113.', 9)), 6, 'another name');
  });
});
