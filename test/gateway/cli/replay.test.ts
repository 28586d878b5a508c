/** What the pages of `sessions/` cannot show of `floodgate replay`: secrets, standard input, and many clients. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { Digester } from '#gateway/identity/digest.ts';
import { floodgate, floodgateCommand } from '#test/support/cli.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';

const POLICIES = `version: 1
identifiers: { ip: { source: client-address } }
policies: [{ name: login, route: POST /login, identifier: ip, limit: 2, window: 1m }]
`;

/** Makes a folder with the policy file and a log. */
function folderOf(t: Test, log: readonly string[]): string {
  const cwd = temporaryFolder(t);
  writeFileSync(join(cwd, 'policies.yaml'), POLICIES);
  writeFileSync(join(cwd, 'a.log'), log.map((line) => `${line}\n`).join(''));
  return cwd;
}

const nginx = (second: number, address: string, request: string): string =>
  `${address} - - [22/Nov/2026:08:00:0${second} +0000] "${request} HTTP/1.1" 200 2 "-" "a"`;

t.test('prints the digests of the gateway if its secret is set', async (t) => {
  const cwd = folderOf(t, Array(3).fill(nginx(1, '192.0.2.1', 'POST /login')));
  const env = { GATEWAY_IDENTITY_SECRET: 'a secret of some length' };
  const { stdout } = await floodgateCommand(['replay', 'a.log', '--json'], { cwd, env });
  const [{ mostDenied }] = JSON.parse(stdout).policies;
  const ip = { name: 'ip', kind: 'address', ipv6Prefix: 64 } as const;
  t.equal(mostDenied[0].identity, new Digester(env.GATEWAY_IDENTITY_SECRET).identify(ip, '192.0.2.1').digest);
});

t.test('reads - as standard input', async (t) => {
  const cwd = folderOf(t, [nginx(1, '192.0.2.1', 'POST /login')]);
  const input = nginx(2, '192.0.2.1', 'POST /login');
  const { stdout } = await floodgate(['replay', 'a.log', '-', '--json'], { cwd, input });
  t.match(JSON.parse(stdout), { requests: 2, to: '2026-11-22T08:00:02.000Z' });
});

t.test('--routes: one client in a thousand may exceed the limit, and no more', async (t) => {
  for (const [clients, limit] of [
    [999, 5],
    [1000, 2],
  ] as const) {
    const lines = Array.from({ length: clients }, (_, i) =>
      Array.from({ length: i === 0 ? 5 : 2 }, () => nginx(1, `10.0.${i >> 8}.${i & 255}`, 'GET /a')),
    );
    const cwd = folderOf(t, lines.flat());
    const { stdout } = await floodgateCommand(['replay', 'a.log', '--routes', '--json'], { cwd });
    t.match(JSON.parse(stdout).routes, [{ identities: clients, limit }]);
  }
});
