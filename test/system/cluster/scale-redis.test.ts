/** The Redis servers and sentinels of the Compose profile "scale", started by its own script on its own files. */
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import t, { type Test } from 'tap';
import { freePort } from '#test/support/ports.ts';
import { projectRoot } from '#test/support/process.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';
import { until } from '#test/support/until.ts';

const folder = join(projectRoot, 'config/scale');
const execute = promisify(execFile);

interface Server {
  readonly port: number;
  start(): void;
  kill(): Promise<void>;
  /** @returns lines; one empty line while it does not answer */
  ask(...command: readonly string[]): Promise<readonly string[]>;
}

/** Starts like the container, in a separate folder and with the addresses of this machine. */
async function server(
  t: Test,
  file: 'redis.conf' | 'sentinel.conf',
  lines: readonly string[],
  changes: Readonly<Record<string, string>> = {},
): Promise<Server> {
  const port = await freePort();
  const own = temporaryFolder(t);
  const data = join(own, 'data');
  mkdirSync(data);
  const changed = Object.entries({ 'dir /data': `dir ${data}`, ...changes }).reduce(
    (text, [from, to]) => {
      if (!text.includes(from)) throw new Error(`${file} has no "${from}"`);
      return text.replaceAll(from, to);
    },
    readFileSync(join(folder, file), 'utf8'),
  );
  writeFileSync(join(own, file), `${changed.replace(/^port .*$/m, `port ${port}`)}bind 127.0.0.1 ::1\n`);
  const options = file === 'sentinel.conf' ? ['--sentinel'] : [];
  let child: ChildProcess | null = null;
  const kill = async (): Promise<void> => {
    if (child === null || child.exitCode !== null || child.signalCode !== null) return;
    child.kill('SIGKILL');
    await once(child, 'close');
  };
  const started: Server = {
    port,
    start() {
      const args = [join(folder, 'start-redis.sh'), join(own, file), data, ...lines, '--', ...options];
      child = spawn('sh', args, { stdio: 'ignore' });
    },
    kill,
    async ask(...command) {
      const { stdout } = await execute('redis-cli', ['-p', String(port), ...command]).catch(() => ({
        stdout: '',
      }));
      return stdout.trim().split('\n');
    },
  };
  t.teardown(kill);
  started.start();
  return started;
}

const roleOf = async ({ ask }: Server): Promise<string> => (await ask('role'))[0] ?? '';

t.test('the sentinels replace a lost primary, and remember the new one across restarts', async (t) => {
  const first = await server(t, 'redis.conf', ['replica-announce-ip localhost']);
  await until(async () => (await roleOf(first)) === 'master');
  const second = await server(t, 'redis.conf', [
    'replica-announce-ip localhost',
    `replicaof localhost ${first.port}`,
  ]);
  await until(async () => (await second.ask('role'))[3] === 'connected');
  const quickly = {
    'redis-1 6379': `localhost ${first.port}`,
    'floodgate 30000': 'floodgate 5000',
  };
  const sentinels: Server[] = [];
  for (let i = 0; i < 3; i++) {
    sentinels.push(await server(t, 'sentinel.conf', ['sentinel announce-ip localhost'], quickly));
  }
  const primary = async (sentinel: Server): Promise<readonly string[]> =>
    sentinel.ask('sentinel', 'get-master-addr-by-name', 'floodgate');
  const all = async (port: number): Promise<boolean> => {
    const found = await Promise.all(sentinels.map(primary));
    return found.every(([host, at]) => host === 'localhost' && at === String(port));
  };
  const fieldOf = (lines: readonly string[], name: string): string => lines[lines.indexOf(name) + 1] ?? '';
  await until(async () => {
    const known = await Promise.all(sentinels.map(({ ask }) => ask('sentinel', 'master', 'floodgate')));
    return known.every(
      (one) => fieldOf(one, 'num-other-sentinels') === '2' && fieldOf(one, 'num-slaves') === '1',
    );
  });
  t.ok(await all(first.port), 'the sentinels name the primary by its host, whose address may change');
  t.equal((await first.ask('config', 'get', 'maxmemory-policy'))[1], 'noeviction');

  await first.ask('set', 'kept', 'yes');
  await until(async () => (await second.ask('get', 'kept'))[0] === 'yes');
  await first.kill();
  await until(() => all(second.port));
  t.strictSame(await second.ask('get', 'kept'), ['yes']);

  first.start();
  // Another one may be chosen: on a busy machine the sentinels may miss replies, and choose again.
  const servers = [first, second];
  const isSettled = async (): Promise<boolean> => {
    const roles = await Promise.all(servers.map(roleOf));
    const named = servers[roles.indexOf('master')];
    return roles.includes('slave') && named !== undefined && (await all(named.port));
  };
  await until(isSettled, 'one is primary for all, the other its replica');
  t.pass('the old primary is a replica');

  // Stop the sentinels before the servers, so that they do not choose again.
  for (const one of sentinels) await one.kill();
  const roles = await Promise.all(servers.map(roleOf));
  for (const one of servers) await one.kill();
  for (const one of servers) one.start();
  await until(async () => {
    const now = await Promise.all(servers.map(roleOf));
    return now.join() === roles.join();
  }, `after the restart: ${roles.join()}`);
  t.pass('each server has the same role after a restart');
  for (const sentinel of sentinels) sentinel.start();
  await until(isSettled, 'the sentinels know who is primary');
  t.pass('the sentinels agree');
});
