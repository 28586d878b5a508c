/** Crawlers by name, and lists of networks and names that a program renews, on running gateways. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { send } from '#test/gateway/proxy/exchange.ts';
import { BEHIND_PROXY, policyFile, startTestGateway } from '#test/support/gateway.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';

const GPTBOT = 'Mozilla/5.0 (compatible; GPTBot/1.2; +https://openai.com/gptbot)';
const BROWSER = 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0';

t.test('uses an edited file of networks and names', async (t) => {
  const folder = temporaryFolder(t);
  writeFileSync(
    join(folder, 'policies.yaml'),
    `deny: [{ file: crawlers.txt, status: 403 }]\n${policyFile('name: all, route: "* *", identifier: ip, limit: 1000, window: 366d')}`,
  );
  const list = join(folder, 'crawlers.txt');
  writeFileSync(
    list,
    '# renewed every night\n; by a program\n198.51.100.0/24 ; SBL1\n2001:db8:bad::/48\nGPTBot # AI\n',
  );
  const env = { ...BEHIND_PROXY, GATEWAY_POLICIES: join(folder, 'policies.yaml') };
  const { port, logged } = await startTestGateway(t, { env });
  const ask = async (from: string, agent = BROWSER) =>
    (await send(port, '/a', { headers: { 'x-forwarded-for': from, 'user-agent': agent } })).status;
  t.strictSame(
    [
      await ask('198.51.100.7'),
      await ask('2001:db8:bad::1'),
      await ask('192.0.2.1'),
      await ask('192.0.2.1', GPTBOT),
    ],
    [403, 403, 200, 403],
  );
  writeFileSync(list, '198.51.100.0/33\n');
  await logged(/crawlers\.txt:1: .*neither an address nor a network/);
  t.equal(await ask('198.51.100.7'), 403, 'a file with a mistake changes nothing');
  writeFileSync(list, '192.0.2.0/24\n192.0.2.0/24\n');
  await logged(/the edited policy file is in use/);
  t.strictSame([await ask('198.51.100.7'), await ask('192.0.2.1')], [200, 403]);
});
