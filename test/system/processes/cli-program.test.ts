/** Features of all commands: help, wrong arguments, exit codes, JSON. */
import { spawnSync } from 'node:child_process';
import { chmodSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer as createHttpServer } from 'node:http';
import { createServer } from 'node:net';
import { join } from 'node:path';
import t from 'tap';
import { askAdmin } from '#gateway/cli/command/admin-client.ts';
import { COMMAND_GROUPS } from '#gateway/cli/commands/all.ts';
import { floodgate, floodgateCommand } from '#test/support/cli.ts';
import { policyFile } from '#test/support/gateway.ts';
import { listen } from '#test/support/listen.ts';
import { projectRoot } from '#test/support/process.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';

const POLICIES = policyFile('name: a, route: GET /a, identifier: ip, limit: 2, window: 1h');
const LOG_LINE = '192.0.2.1 - - [22/Nov/2026:08:00:00 +0000] "GET /a HTTP/1.1" 200 2 "-" "a"';

t.test('a command loads only the modules that it needs', async (t) => {
  const tell = `import { registerHooks } from 'node:module';
    registerHooks({ load(url, context, next) { process.stderr.write(url + '\\n'); return next(url, context); } });`;
  const env = { NODE_OPTIONS: `--import data:text/javascript,${encodeURIComponent(tell)}` };
  const { stderr } = await floodgate(['--json', 'unban', '--help'], { env });
  t.match(stderr, /commands\/clients\.ts$/m);
  t.notMatch(stderr, /commands\/(replay|check)\.ts$|typebox|yaml/m);
});

t.test('wrong arguments exit with 2 and print the usage', async (t) => {
  t.match(await floodgate([]), { code: 2, stdout: '', stderr: /Name a command/ });
  t.match(await floodgate(['chek']), { code: 2, stdout: '', stderr: 'Did you mean check?\n' });
  for (const args of [['explain'], ['why'], ['check', '--colour']])
    t.match(
      await floodgateCommand(args),
      { code: 2, stdout: '', stderr: `; "floodgate ${args[0]} --help" shows how to call it\n` },
      args.join(' '),
    );
  t.match(await floodgateCommand(['check', 'a', 'b']), { code: 2, stdout: '', stderr: /b/ });
  const unread = {
    code: 3,
    stderr: /^no-such\.yaml cannot be read \(ENOENT\); name an existing policy file/,
  };
  t.match(await floodgateCommand(['check', 'no-such.yaml']), unread);
});

t.test('distinguishes a gateway that does not answer from one that is not running', async (t) => {
  const silent = createServer();
  const port = await listen(t, silent);
  const gateway = `http://127.0.0.1:${port}`;
  await t.rejects(askAdmin({ gateway, token: undefined }, 'GET', '/api/policies', undefined, 50), {
    exitCode: 3,
    message: `${gateway} gave no answer within 50 ms; it is there, but the gateway is busy or its store hangs`,
  });
});

t.test('the help lists each command in one group', async (t) => {
  const { stdout } = await floodgate(['--help']);
  for (const [group, commands] of Object.entries(COMMAND_GROUPS)) {
    const [, section = ''] = stdout.split(`\n${group}:\n`);
    const [listed = ''] = section.split('\n\n');
    const names = [...listed.matchAll(/^ {2}floodgate ([a-z]+)/gm)].map(([, name]) => name);
    t.strictSame(names, Object.keys(commands), group);
  }
  t.notMatch(stdout, /^Commands:/m);
  t.match(stdout, /\nOptions:\n.*--json.*\nExit codes/s);
  const { version } = JSON.parse(readFileSync(join(projectRoot, 'package.json'), 'utf8'));
  t.match(await floodgate(['--version']), { stdout: `${version} (Node.js ${process.versions.node})\n` });
  t.match(await floodgate(['-h']), { code: 0, stdout });
});

t.test('commands read the variables of the gateway', async (t) => {
  const cwd = temporaryFolder(t);
  writeFileSync(join(cwd, 'own.yaml'), POLICIES);
  writeFileSync(join(cwd, 'access.log'), `${LOG_LINE}\n`);
  const env = { GATEWAY_POLICIES: 'own.yaml' };
  t.match(await floodgateCommand(['check'], { cwd, env }), { code: 0, stdout: /^own\.yaml: 1 policies/ });
  t.match(await floodgateCommand(['replay', 'access.log'], { cwd, env }), { code: 0, stdout: /1 allowed/ });
  t.equal((await floodgateCommand(['check'], { cwd, env: { GATEWAY_POLICIES: '' } })).code, 3);
  t.equal((await floodgateCommand(['init'], { cwd, env: { GATEWAY_POLICIES: 'new.yaml' } })).code, 0);
  t.match(await floodgateCommand(['check', 'new.yaml'], { cwd }), { code: 0 });

  const asked: (string | undefined)[] = [];
  const server = createHttpServer((request, response) => {
    asked.push(request.headers.authorization);
    response.setHeader('content-type', 'application/json').end('{"total":0,"bans":[],"addresses":{}}');
  });
  const port = String(await listen(t, server));
  for (const host of [undefined, '0.0.0.0', '::', '127.0.0.1'])
    t.match(
      await floodgateCommand(['bans'], {
        env: {
          GATEWAY_ADMIN_PORT: port,
          GATEWAY_ADMIN_TOKEN: 'secret',
          ...(host === undefined ? {} : { GATEWAY_ADMIN_HOST: host }),
        },
      }),
      { code: 0, stdout: 'Nobody is banned.\n' },
      String(host),
    );
  t.match(asked, new Array(4).fill('Bearer secret'));
  const { stderr } = await floodgateCommand(['bans'], {
    env: { GATEWAY_ADMIN_HOST: '::1', GATEWAY_ADMIN_PORT: '1' },
  });
  t.match(stderr, /no gateway answers on http:\/\/\[::1\]:1;/);
});

t.test('a folder, and a file without permission, are named as such', async (t) => {
  const cwd = temporaryFolder(t);
  const file = join(cwd, 'mine.yaml');
  writeFileSync(file, POLICIES, { mode: 0o000 });
  for (const args of [['check'], ['replay', 'a.log', '--file']])
    t.match(
      await floodgateCommand([...args, '.'], { cwd }),
      { code: 3, stderr: /^\. is a folder; name/ },
      args.join(' '),
    );
  // Root may read everything, so its test runs as another user.
  const uid = process.getuid?.() === 0 ? 65_534 : undefined;
  chmodSync(cwd, 0o755);
  const { stderr } = spawnSync(
    process.execPath,
    [join(projectRoot, 'gateway/cli/floodgate.mjs'), 'check', file],
    {
      encoding: 'utf8',
      ...(uid === undefined ? {} : { uid, gid: uid }),
    },
  );
  t.match(stderr, /mine\.yaml cannot be read: you have no permission; /);
});
