/** The package on a machine with only Node 20: packed, installed in an empty folder, started. */
import { execFile } from 'node:child_process';
import { cpSync, globSync, readFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { promisify } from 'node:util';
import t, { type Test } from 'tap';
import { nodeHole } from '#gateway/operate/doctor/node-holes.ts';
import { readPage } from '#test/docs/pages.ts';
import { startUpstream } from '#test/support/gateway.ts';
import { lives } from '#test/support/gateway-process.ts';
import { clone } from '#test/support/installation.ts';
import { freePort } from '#test/support/ports.ts';
import { projectRoot } from '#test/support/process.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';
import { until } from '#test/support/until.ts';

const run = promisify(execFile);

/** PATH with the machine's own Node.js and npm, without those of the project. */
const PATH = (process.env.PATH ?? '')
  .split(delimiter)
  .filter((folder) => !folder.includes('node_modules') && !folder.startsWith(projectRoot))
  .join(delimiter);
const env = { PATH, HOME: process.env.HOME ?? '', npm_config_prefer_offline: 'true' };

function hasOnlyThePackage(t: Test, files: readonly string[]): void {
  t.notOk(
    files.some((name) => /\/(api|test|bench)\/|(?<!\.d)\.ts$/.test(name)),
    'no other files, and none in TypeScript',
  );
  t.ok(files.includes('package/LICENSE') && files.includes('package/README.md'));
}

t.test('the lines of docs/install.md, typed in a fresh clone, start a gateway that limits', async (t) => {
  const text = readPage('docs/install.md').blocks.find(({ text }) => text.includes('npm pack'))?.text ?? '';
  const lines = text.trim().split('\n');
  const start = (lines.pop() ?? '').split(' ');
  t.match(start, ['npx', 'floodgate', 'start', '--upstream']);
  const folder = temporaryFolder(t);
  cpSync(clone(t), join(folder, 'clone'), { recursive: true });
  const { stdout } = await run('sh', ['-ec', lines.join('\n')], { cwd: join(folder, 'clone'), env });
  t.match(stdout, /policies\.yaml is written/);
  const cwd = join(folder, 'my-gateway');
  t.strictSame(globSync('node_modules/**/{*.node,binding.gyp}', { cwd }), [], 'no native code');
  const packed = await run('tar', ['tzf', 'floodgate.tgz'], { cwd });
  hasOnlyThePackage(t, packed.stdout.trim().split('\n'));
  const { stdout: version } = await run('npx', ['floodgate', '--version'], { cwd, env });
  const [, node = ''] = /\(Node\.js (.*)\)/.exec(version) ?? [];
  t.equal(nodeHole(node), null, 'the package brings a Node.js without known holes');
  await run('npx', ['floodgate', 'check'], { cwd, env });

  const upstream = await startUpstream(t);
  const port = await freePort();
  const settings = { GATEWAY_HOST: '127.0.0.1', GATEWAY_ADMIN_PORT: String(await freePort()) };
  const gateway = execFile('npx', [...start.slice(1, -1), upstream.origin, '--port', String(port)], {
    cwd,
    env: { ...env, ...settings },
  });
  let output = '';
  for (const stream of [gateway.stdout, gateway.stderr])
    stream?.on('data', (chunk: string) => {
      output += chunk;
    });
  t.teardown(() => gateway.kill('SIGKILL'));
  await until(() => /Gateway ready/.test(output) || gateway.exitCode !== null, 'ready');
  const statuses: number[] = [];
  // More than two windows of the policy `export` admit.
  const request = { method: 'POST', headers: { 'x-api-key': 'mine' } };
  for (let i = 0; i < 45; i++)
    statuses.push((await fetch(`http://127.0.0.1:${port}/api/exports`, request)).status);
  t.ok(statuses.includes(200) && statuses.includes(429), `${statuses}\n${output}`);

  const below = descendants(gateway.pid ?? 0);
  t.ok(below.length > 0);
  gateway.kill('SIGTERM');
  await until(() => below.filter(lives).length === 0, 'all processes have ended');
});

function descendants(pid: number): number[] {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8')
    .trim()
    .split(' ')
    .filter(Boolean);
  return children.flatMap((child) => [Number(child), ...descendants(Number(child))]);
}
