/** Features of all commands: help, wrong arguments, exit codes, JSON. */
import { readFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import t from 'tap';
import { askAdmin } from '#gateway/cli/command/admin-client.ts';
import { REMOVED } from '#gateway/cli/commands/all.ts';
import { floodgate, floodgateCommand } from '#test/support/cli.ts';
import { listen } from '#test/support/listen.ts';
import { projectRoot } from '#test/support/process.ts';

t.test('the help lists the commands and the exit codes', async (t) => {
  const { code, stdout } = await floodgate(['--help']);
  t.equal(code, 0);
  for (const word of ['check', 'completion', 'Exit codes']) t.match(stdout, word);
});

t.test('each command has help of its own with an example', async (t) => {
  const { stdout } = await floodgate(['--help']);
  const names = [...stdout.matchAll(/^ {2}floodgate ([a-z]+)/gm)].map(([, name = '']) => name);
  t.ok(names.length >= 2);
  for (const name of names.filter((name) => name !== 'completion')) {
    const help = await floodgate([name, '--help']);
    t.equal(help.code, 0, name);
    t.match(help.stdout, /Examples:/, name);
  }
});

t.test('a command loads only the modules that it needs', async (t) => {
  const tell = `import { registerHooks } from 'node:module';
    registerHooks({ load(url, context, next) { process.stderr.write(url + '\\n'); return next(url, context); } });`;
  const env = { NODE_OPTIONS: `--import data:text/javascript,${encodeURIComponent(tell)}` };
  const { stderr } = await floodgate(['--json', 'unban', '--help'], { env });
  t.match(stderr, /commands\/clients\.ts$/m);
  t.notMatch(stderr, /commands\/(bans|check)\.ts$|typebox|yaml|cli-progress/m);
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
  t.match(await floodgate(['check', '--colour']), { code: 2, stdout: '', stderr: /colour/ });
  t.match(await floodgate(['check', 'a', 'b']), { code: 2, stdout: '', stderr: /b/ });
});

t.test('a command by the name that other products give it', async (t) => {
  const cases = { whois: 'inspect', test: 'check', validate: 'check', block: 'ban', run: 'start' };
  for (const [called, meant] of Object.entries(cases)) {
    const { code, stderr } = await floodgateCommand([called, '192.0.2.1']);
    t.equal(code, 2, called);
    t.equal(stderr, `Unknown command: ${called}. Did you mean ${meant}?\n`);
  }
});

t.test('a removed command or option says what to do instead', async (t) => {
  for (const name of Object.keys(REMOVED)) {
    const { code, stdout, stderr } = await floodgateCommand([...name.split(' '), 'a', 'b']);
    t.equal(code, 2, name);
    t.equal(stdout, '');
    t.match(stderr, new RegExp(`^The command ${name} was removed: .{20,}\\n$`), name);
  }
});

t.test('the version is that of the package', async (t) => {
  const { version } = JSON.parse(readFileSync(join(projectRoot, 'package.json'), 'utf8'));
  t.match(await floodgate(['--version']), {
    code: 0,
    stdout: `${version} (Node.js ${process.versions.node})\n`,
    stderr: '',
  });
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

t.test('a file that cannot be read exits with 3', async (t) => {
  t.match(await floodgate(['check', 'no-such.yaml']), {
    code: 3,
    stdout: '',
    stderr: /^no-such\.yaml cannot be read \(ENOENT\); name an existing policy file/,
  });
});

t.test('a completion script for the shell', async (t) => {
  const { code, stdout } = await floodgate(['completion']);
  t.equal(code, 0);
  t.match(stdout, /floodgate/);
  const completed = await floodgate(['--get-yargs-completions', 'floodgate', 'che']);
  t.match(completed.stdout, /check/);
});
