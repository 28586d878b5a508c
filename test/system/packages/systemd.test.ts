/** The systemd units, judged by systemd's own tool and compared with the programs that they start. */
import { execFileSync, spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { variables as API_VARIABLES } from '#api/config.ts';
import { GATEWAY_VARIABLES, readConfig } from '#gateway/config.ts';
import { VERSION } from '#shared/version.ts';
import { policyFile, startUpstream } from '#test/support/gateway.ts';
import { environment } from '#test/support/gateway-process.ts';
import { projectRoot, startProgram } from '#test/support/process.ts';
import { startRedis } from '#test/support/redis.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';

/** In tenths. */
const EXPOSURE_MAX = 20;

const units = [
  { name: 'floodgate.service', variables: GATEWAY_VARIABLES },
  { name: 'floodgate-api.service', variables: API_VARIABLES },
].map(({ name, variables }) => {
  const file = join(projectRoot, 'package/systemd', name);
  const text = readFileSync(file, 'utf8');
  return { name, file, variables: variables.map((variable) => variable.name), text };
});

/** Returns all values of a setting. */
function valuesOf(text: string, setting: string): readonly string[] {
  return [...text.matchAll(new RegExp(`^${setting}=(.*)$`, 'gm'))].map(([, value = '']) => value);
}

for (const { name, file, variables, text } of units) {
  t.test(`${name} exposes little`, async (t) => {
    const args = ['security', '--offline=true', '--no-pager', `--threshold=${EXPOSURE_MAX}`, file];
    const { status, stdout } = spawnSync('systemd-analyze', args, { encoding: 'utf8' });
    t.equal(status, 0, stdout);
    t.match(stdout, /Overall exposure level for \S+: \d/);
    for (const [setting, value] of [
      ['DynamicUser', 'yes'],
      ['ProtectSystem', 'strict'],
      ['NoNewPrivileges', 'yes'],
    ] as const)
      t.strictSame(valuesOf(text, setting), [value]);
  });

  t.test(`${name} names variables that exist, and no secret`, async (t) => {
    const credentials = valuesOf(text, 'LoadCredential');
    t.ok(credentials.length >= 3);
    const set = valuesOf(text, 'Environment').map((line) => line.split('=')[0] ?? '');
    for (const variable of [...credentials, ...set.filter((variable) => !variable.startsWith('NODE_'))])
      t.ok(variables.includes(variable), variable);
    for (const credential of credentials)
      t.notOk(set.includes(credential), `${credential} would hide its credential`);
    const secret = /PASSWORD|SECRET|TOKEN|API_KEY|ACCESS_KEY/;
    t.strictSame(
      variables.filter((variable) => secret.test(variable)).filter((v) => !credentials.includes(v)),
      [],
    );
  });
}

t.test('all instances of the survey API have one user, so that they can share a port', async (t) => {
  t.strictSame(valuesOf(units[1]?.text ?? '', 'User'), ['floodgate-api']);
});

t.test('systemd waits longer than the programs take to stop', async (t) => {
  const { drainDelayMs, drainTimeoutMs } = readConfig({}).config;
  const [gateway, api] = units.map(({ text }) => Number(valuesOf(text, 'TimeoutStopSec')[0]) * 1000);
  t.ok((gateway ?? 0) > drainDelayMs + drainTimeoutMs);
  const main = readFileSync(join(projectRoot, 'api/main.ts'), 'utf8');
  const stop = Number(/const STOP_MS = ([\d_]+);/.exec(main)?.[1]?.replaceAll('_', ''));
  t.ok((api ?? 0) > stop && stop > 0);
});

/** Returns the system calls that the unit allows, as systemd resolves its sets. */
function allowedBy(text: string): readonly string[] {
  const sets = new Map<string, string[]>();
  const listed = execFileSync('systemd-analyze', ['syscall-filter', '--no-pager'], { encoding: 'utf8' });
  let current: string[] = [];
  for (const line of listed.split('\n')) {
    if (/^@/.test(line)) {
      current = [];
      sets.set(line.trim(), current);
    } else if (/^ +[@a-z]/.test(line)) current.push(line.trim());
  }
  const callsOf = (name: string): readonly string[] =>
    name.startsWith('@') ? (sets.get(name) ?? []).flatMap(callsOf) : [name];
  const allowed = new Set<string>();
  for (const value of valuesOf(text, 'SystemCallFilter')) {
    const isDenied = value.startsWith('~');
    for (const call of value.replace('~', '').split(' ').flatMap(callsOf))
      isDenied ? allowed.delete(call) : allowed.add(call);
  }
  return [...allowed];
}

t.test('the gateway starts, limits, reloads and stops with the system calls of its unit', async (t) => {
  const allowed = allowedBy(units[0]?.text ?? '');
  t.ok(allowed.includes('accept4') && !allowed.includes('mount') && !allowed.includes('setpriority'));
  const filtered = ['python3', join(import.meta.dirname, 'filtered.py'), ...allowed, '--'];
  const probe = spawnSync('python3', [...filtered.slice(1), 'python3', '-c', 'import os; os.nice(1)'], {
    encoding: 'utf8',
  });
  t.match(probe.stderr, /Operation not permitted/, 'the filter is in force');

  const upstream = await startUpstream(t);
  const redis = await startRedis(t);
  const folder = temporaryFolder(t);
  const policies = join(folder, 'policies.yaml');
  const policy = (limit: number): string =>
    policyFile(`name: a, route: GET /a, identifier: ip, limit: ${limit}, window: 366d`);
  writeFileSync(policies, policy(1));
  const env = await environment({
    GATEWAY_UPSTREAM: upstream.origin,
    GATEWAY_REDIS_URL: redis.url,
    GATEWAY_WORKERS: '2',
    GATEWAY_POLICIES: policies,
    GATEWAY_REUSE_PORT: '1',
    GATEWAY_ACCESS_LOG: join(folder, 'access.log'),
    CREDENTIALS_DIRECTORY: folder,
  });
  writeFileSync(join(folder, 'GATEWAY_ADMIN_TOKEN'), 'token-of-the-test-0123456789\n');
  const gateway = startProgram([...filtered, process.execPath, 'gateway/cli/floodgate.mjs', 'start'], env);
  t.teardown(() => gateway.stop('SIGKILL'));
  await gateway.until(/Gateway ready/);
  const ask = async (): Promise<number> => (await fetch(`http://127.0.0.1:${env.GATEWAY_PORT}/a`)).status;
  t.strictSame([await ask(), await ask()], [200, 429]);
  const metrics = `http://127.0.0.1:${env.GATEWAY_ADMIN_PORT}/metrics`;
  t.equal((await fetch(metrics)).status, 401, 'the token is that of the credential');
  const headers = { authorization: 'Bearer token-of-the-test-0123456789' };
  const shown = await (await fetch(metrics, { headers })).text();
  t.match(
    shown,
    `floodgate_build_info{version="${VERSION}",node="${process.versions.node}"} 1\n`,
    '1 for all processes',
  );
  writeFileSync(policies, policy(2));
  gateway.child.kill('SIGHUP');
  await gateway.until(/the edited policy file is in use.*the edited policy file is in use/s);
  t.equal(await ask(), 200);
  t.equal(await gateway.stop('SIGTERM'), 0);
});
