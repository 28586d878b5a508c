/** `floodgate init` and `floodgate start`: from an empty folder to a running gateway. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { floodgate } from '#test/support/cli.ts';
import { startUpstream } from '#test/support/gateway.ts';
import { childrenOf } from '#test/support/gateway-process.ts';
import { freePort } from '#test/support/ports.ts';
import { projectRoot, start } from '#test/support/process.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';

const LAUNCHER = join(projectRoot, 'gateway/cli/floodgate.mjs');

t.test('init writes each example without mistakes, and never overwrites a file', async (t) => {
  const cwd = temporaryFolder(t);
  for (const name of ['json-api', 'login', 'plans', 'swarm', 'formbricks']) {
    const file = `${name}.yaml`;
    t.match(await floodgate(['init', file, '--from', name], { cwd }), { code: 0, stdout: /is written/ });
    t.notMatch(readFileSync(join(cwd, file), 'utf8'), /\$schema/, 'no path to a missing schema');
    t.match(await floodgate(['check', file], { cwd }), { code: 0 }, name);
  }
  writeFileSync(join(cwd, 'mine.yaml'), 'mine');
  t.match(await floodgate(['init', 'mine.yaml'], { cwd }), { code: 2, stderr: /already exists/ });
  t.equal(readFileSync(join(cwd, 'mine.yaml'), 'utf8'), 'mine');
  t.match(await floodgate(['init', 'no/such.yaml'], { cwd }), { code: 3, stderr: /cannot be written/ });
  t.match(await floodgate(['init', '--from', 'nothing'], { cwd }), { code: 2 });
});

t.test('start prints what is missing', async (t) => {
  const cwd = temporaryFolder(t);
  t.match(await floodgate(['start'], { cwd }), { code: 3, stderr: /floodgate init policies\.yaml/ });
  writeFileSync(join(cwd, 'policies.yaml'), 'version: 1\npolicies: []\n');
  t.match(await floodgate(['start', '--port', 'many'], { cwd }), { code: 1, stderr: /GATEWAY_PORT/ });
});

t.test('start runs the gateway, and forwards signals', async (t) => {
  const upstream = await startUpstream(t);
  const cwd = temporaryFolder(t);
  await floodgate(['init', '--from', 'login'], { cwd });
  const port = await freePort();
  const settings = { GATEWAY_HOST: '127.0.0.1', GATEWAY_ADMIN_PORT: String(await freePort()) };
  const args = ['start', '--upstream', upstream.origin, '--port', String(port)];
  const gateway = start([LAUNCHER, ...args], settings, cwd);
  t.teardown(() => gateway.stop('SIGKILL'));
  await gateway.until(/Gateway ready/);
  t.equal((await fetch(`http://127.0.0.1:${port}/`)).status, 200);
  const [pid] = childrenOf(gateway.child.pid);
  const environment = readFileSync(`/proc/${pid}/environ`, 'utf8').split('\0');
  t.ok(environment.includes('MALLOC_ARENA_MAX=1'), 'the gateway has one memory arena');
  gateway.child.kill('SIGHUP');
  await gateway.until(/the edited policy file is in use/);
  t.equal(await gateway.stop('SIGTERM'), 0);
});
