/** A file of trusted proxies that is edited while gateways run. */
import { rmSync, writeFileSync } from 'node:fs';
import { Agent } from 'node:http';
import { join } from 'node:path';
import t from 'tap';
import { send } from '#test/gateway/proxy/exchange.ts';
import { startTestAdmin } from '#test/support/admin.ts';
import { floodgateCommand } from '#test/support/cli.ts';
import { policyFile, startTestGateway, startUpstream } from '#test/support/gateway.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';
import { insideLongWindow } from '#test/support/window.ts';

const IN_USE = /the edited file of trusted proxies is in use/;
const REFUSED = /the edited file of trusted proxies is refused/;

t.test('an edited file is used for open connections too, and a broken one changes nothing', async (t) => {
  await insideLongWindow();
  const policies = `plan: { header: x-plan }\n${policyFile(
    'name: all, route: "GET /*", identifier: ip, limit: 2, window: 366d, overrides: [{ for: { plan: gold }, limit: 9 }]',
  )}`;
  const file = join(temporaryFolder(t), 'proxies.txt');
  writeFileSync(file, '10.0.0.0/8\n');
  const { port, logged } = await startTestGateway(t, {
    policies,
    env: { GATEWAY_TRUSTED_PROXIES: file },
  });
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  t.teardown(() => agent.destroy());
  let client = 0;
  const ask = async () => {
    const headers = { 'x-forwarded-for': `192.0.2.${++client}`, 'x-plan': 'gold' };
    const reply = await send(port, '/a', { agent, headers });
    return [reply.status, reply.headers['x-ratelimit-limit']];
  };
  t.strictSame(await ask(), [200, '2'], 'this machine is no trusted proxy');
  writeFileSync(file, '10.0.0.0/8\n127.0.0.0/8\n');
  await logged(/"networks":2,.*in use/);
  for (let i = 0; i < 4; i++) t.strictSame(await ask(), [200, '9'], 'on the connection that was open before');
  writeFileSync(file, '10.0.0.0/8\n127.0.0.0/x\n');
  await logged(REFUSED);
  t.strictSame(await ask(), [200, '9'], 'a mistake changes nothing');
  writeFileSync(file, '10.0.0.0/8\n');
  await logged(/"networks":1,.*in use/);
  t.strictSame(await ask(), [200, '2'], 'the connection has lost its trust');
  t.strictSame(await ask(), [429, '2'], 'and counts as this machine');
});

t.test('doctor reports a file that is refused, and SIGHUP reads it again', async (t) => {
  const file = join(temporaryFolder(t), 'proxies.txt');
  writeFileSync(file, '10.0.0.0/8\n');
  const upstream = await startUpstream(t, (_req, res) => res.writeHead(404).end());
  const gateway = await startTestGateway(t, { upstream, env: { GATEWAY_TRUSTED_PROXIES: file } });
  const admin = await startTestAdmin(t, gateway);
  const wrong = async (): Promise<unknown> => {
    const { stdout } = await floodgateCommand(['doctor', '--json', '--gateway', admin]);
    const { findings } = JSON.parse(stdout) as { findings: { check: string; ok: boolean }[] };
    return findings.filter(({ check, ok }) => check === 'trusted-proxies' && !ok);
  };
  t.strictSame(await wrong(), []);
  rmSync(file);
  await gateway.logged(REFUSED);
  t.match(await wrong(), [{ message: /the old networks stay trusted: .*ENOENT/, fix: /without a restart/ }]);
  writeFileSync(file, '10.0.0.0/8\n');
  gateway.gateway.reload();
  await gateway.logged(IN_USE);
  t.strictSame(await wrong(), []);
});
