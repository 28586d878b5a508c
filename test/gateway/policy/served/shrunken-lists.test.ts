/** Lists that another program renews, and that are suddenly empty or nearly so. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { send } from '#test/gateway/proxy/exchange.ts';
import { startTestAdmin } from '#test/support/admin.ts';
import { floodgateCommand } from '#test/support/cli.ts';
import { BEHIND_PROXY, startTestGateway } from '#test/support/gateway.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';

const FILE = `version: 1
identifiers:
  ip: { source: client-address }
  provider: { source: [{ network: networks.txt }] }
plans: { file: plans.txt }
deny: [{ file: denied.txt, status: 403 }]
regulars: { never: { network: hosting.txt } }
policies:
  - { name: all, route: "GET /*", identifier: ip, limit: 1000, window: 366d, overridesFile: overrides.txt }
  - { name: providers, route: "GET /*", identifier: provider, limit: 1000, window: 366d }
  - { name: site, route: "GET /*", identifier: ip, limit: 1000, window: 366d, newcomers: { limit: 500, window: 366d } }
`;

const LINES: Readonly<Record<string, (i: number) => string>> = {
  'networks.txt': (i) => `203.0.113.${i}/32 AS64500\n`,
  'hosting.txt': (i) => `198.51.100.${i}/32 AS64500\n`,
  'denied.txt': (i) => `192.0.2.${i}\n`,
  'plans.txt': (i) => `203.0.113.${i} gold\n`,
  'overrides.txt': (i) => `address 203.0.113.${i} ${100 + i}\n`,
};

/** Runs ahead, because a text that looks cut off must stay unchanged for seconds. */
const clock = (): number => performance.timeOrigin + 20 * performance.now();

const IN_USE = /the edited policy file is in use/;

function listOf(name: string, count: number): string {
  return Array.from({ length: count }, (_, i) => LINES[name]?.(i + 1)).join('');
}

for (const name of Object.keys(LINES))
  t.test(`${name}: empty or a tenth of itself, it is refused, and the old one stays in use`, async (t) => {
    const folder = temporaryFolder(t);
    const write = (text: string) => writeFileSync(join(folder, name), text);
    for (const each of Object.keys(LINES)) writeFileSync(join(folder, each), listOf(each, 20));
    writeFileSync(join(folder, 'policies.yaml'), FILE);
    const gateway = await startTestGateway(t, {
      clock,
      env: { ...BEHIND_PROXY, GATEWAY_POLICIES: join(folder, 'policies.yaml') },
    });
    const admin = await startTestAdmin(t, gateway);
    const statusOf = async (from: string): Promise<number> =>
      (await send(gateway.port, '/', { headers: { 'x-forwarded-for': from } })).status;
    const { policyRefusal } = gateway.gateway;

    write('');
    await gateway.logged(new RegExp(`${name} has no entries any more, and had 20.*is refused`));
    t.match(policyRefusal(), `${name} has no entries any more`);
    const { stdout } = await floodgateCommand(['doctor', '--json', '--gateway', admin]);
    t.match(stdout, `${name} has no entries any more`, 'doctor says so');
    t.equal(await statusOf('192.0.2.20'), 403, 'the lists in use stay');

    write('# no data today\n; nor yesterday\n\n');
    gateway.gateway.reload();
    write(listOf(name, 2));
    await gateway.logged(new RegExp(`${name} has 2 entries, and had 20`));
    write(listOf(name, 3));
    await gateway.logged(IN_USE);
    t.equal(policyRefusal(), null, 'a list that lost less is used');
  });

t.test('an empty list is used if it was empty at the start, or if it is new', async (t) => {
  const folder = temporaryFolder(t);
  const file = join(folder, 'policies.yaml');
  for (const name of Object.keys(LINES)) writeFileSync(join(folder, name), '');
  writeFileSync(file, FILE);
  const gateway = await startTestGateway(t, { clock, env: { GATEWAY_POLICIES: file } });
  writeFileSync(join(folder, 'other.txt'), '');
  writeFileSync(file, FILE.replace('denied.txt', 'other.txt'));
  await gateway.logged(IN_USE);
  t.equal(gateway.gateway.policyRefusal(), null);
  const { stdout, stderr } = await floodgateCommand(['check', file]);
  t.match(`${stdout}${stderr}`, /other\.txt has no entries/, 'check warns');
});
