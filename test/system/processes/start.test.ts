/** `npm start`: two processes with one life. The gateway is a small stand-in; that of the product has its own tests. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { freePort } from '#test/support/ports.ts';
import { start, startProgram } from '#test/support/process.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';

const folder = temporaryFolder(t);

const gateway = join(import.meta.dirname, 'gateway.mjs');
const failing = join(folder, 'failing.mjs');
writeFileSync(failing, `console.error('gateway cannot start'); process.exit(1);`);

const program = (path: string): string[] => ['start.ts', path];
const settings = async (): Promise<Record<string, string>> => ({
  API_PORT: String(await freePort()),
  DATABASE_URL: 'file::memory:',
  STORAGE_PATH: join(folder, 'uploads'),
});

t.test(
  'starts the API, then the gateway, then prints the credentials, and stops in reverse order',
  async (t) => {
    const env = await settings();
    const both = start(program(gateway), env);
    t.teardown(() => both.stop('SIGTERM'));
    await both.until(/environment\n/);
    const output = both.output();
    t.ok(output.indexOf('API ready') < output.indexOf('gateway ready'));
    t.ok(output.indexOf('gateway ready') < output.indexOf('First start'));
    t.match(output, `gateway ready, upstream http://127.0.0.1:${env.API_PORT}`);
    t.match(output, / arenas 1\n/, 'the gateway has one memory arena');
    t.equal(output.split('First start').length, 2, 'the credentials are printed once');
    t.equal(await both.stop('SIGTERM'), 0);
    t.match(both.output(), 'gateway ends by SIGTERM, API says 200');
  },
);

t.test('the first line and the example calls have the address of the operator', async (t) => {
  for (const [env, line, call] of [
    [
      { GATEWAY_PORT: '8099', GATEWAY_UPSTREAM: 'http://127.0.0.1:9' },
      ' on http://localhost:8099',
      'curl http://localhost:8099/api',
    ],
    [
      { GATEWAY_PORT: '8443', GATEWAY_TLS_CERT: 'cert.pem' },
      ' on https://localhost:8443',
      'curl https://localhost:8443/api',
    ],
    [
      { GATEWAY_PORT: 'x', PUBLIC_URL: 'https://feedback.example.com' },
      '',
      'curl https://feedback.example.com/api',
    ],
  ] as const) {
    const loaded = ['--require=./test/support/loaded-modules.cjs', ...program(gateway)];
    const both = start(loaded, { ...(await settings()), ...env });
    t.teardown(() => both.stop('SIGKILL'));
    await both.until(/environment\n/);
    t.equal(await both.stop('SIGTERM'), 0);
    t.equal(both.output().split('\n')[0], `Floodgate is starting${line} …`);
    t.match(both.output(), call);
    if ('GATEWAY_UPSTREAM' in env) t.match(both.output(), `upstream ${env.GATEWAY_UPSTREAM} `);
    const [, list = ''] = both.output().match(/^Loaded (\[.*\])$/m) ?? [];
    const files = JSON.parse(list).filter((name: string) => name.startsWith('file:'));
    const names = files.map((name: string) => name.split('/').at(-1));
    t.strictSame(names, ['start.ts'], 'the parent loads only its own file');
  }
});

t.test('Ctrl-C reaches the whole group, and the gateway still ends before the API', async (t) => {
  const both = startProgram(['setsid', process.execPath, ...program(gateway)], await settings());
  t.teardown(() => both.stop('SIGKILL'));
  await both.until(/environment\n/);
  process.kill(-(both.child.pid ?? 0), 'SIGINT');
  t.equal(await both.ended(), 0);
  t.match(
    both.output(),
    'gateway ends by SIGTERM, API says 200',
    'the parent stops the gateway, not the terminal',
  );
});

t.test('both end when the parent is killed', async (t) => {
  const both = start(program(gateway), await settings());
  await both.until(/environment\n/);
  // Resolves when the last process that holds the output is gone.
  await both.stop('SIGKILL');
  t.match(both.output(), /gateway ends by disconnect/);
});

t.test('exit 1: the gateway ends unexpectedly, and the API is stopped', async (t) => {
  const both = start(program(gateway), await settings());
  const [, pid] = await both.until(/pid (\d+)[\s\S]*environment\n/);
  process.kill(Number(pid), 'SIGKILL');
  t.equal(await both.ended(), 1);
  t.match(both.output(), 'The gateway ended; stopping the rest');
});

t.test('exit 1: the gateway cannot start, but the credentials are printed', async (t) => {
  const both = start(program(failing), await settings());
  t.equal(await both.ended(), 1);
  t.match(both.output(), /gateway cannot start/);
  t.match(both.output(), /API key +fbk_/);
});

t.test('exit 1: the API cannot start, and the gateway is not started', async (t) => {
  const both = start(program(gateway), { API_PORT: 'x' });
  t.equal(await both.ended(), 1);
  t.match(both.output(), /^The API cannot start: API_PORT: /m);
  t.notMatch(both.output(), /gateway ready/);
});
