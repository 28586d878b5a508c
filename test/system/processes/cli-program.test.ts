/** What all commands share: help, wrong calls, exit codes, JSON. */
import t from 'tap';
import { floodgate } from '#test/support/cli.ts';

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

t.test('a command loads what it needs, and no more', async (t) => {
  const tell = `import { registerHooks } from 'node:module';
    registerHooks({ load(url, context, next) { process.stderr.write(url + '\\n'); return next(url, context); } });`;
  const env = { NODE_OPTIONS: `--import data:text/javascript,${encodeURIComponent(tell)}` };
  const { stderr } = await floodgate(['--json', 'unban', '--help'], { env });
  t.match(stderr, /commands\/unban\.ts$/m);
  t.notMatch(stderr, /commands\/(ban|check)\.ts$|typebox|yaml|cli-progress/m);
});

t.test('a wrong call exits with 2 and says how to call it', async (t) => {
  t.match(await floodgate([]), { code: 2, stdout: '', stderr: /Name a command/ });
  t.match(await floodgate(['chek']), { code: 2, stdout: '', stderr: /check/ });
  t.match(await floodgate(['check', '--colour']), { code: 2, stdout: '', stderr: /colour/ });
  t.match(await floodgate(['check', 'a', 'b']), { code: 2, stdout: '', stderr: /b/ });
});

t.test('a file that cannot be read exits with 3', async (t) => {
  t.match(await floodgate(['check', 'no-such.yaml']), { code: 3, stdout: '', stderr: /no-such\.yaml/ });
});

t.test('a script for the shell', async (t) => {
  const { code, stdout } = await floodgate(['completion']);
  t.equal(code, 0);
  t.match(stdout, /floodgate/);
  const completed = await floodgate(['--get-yargs-completions', 'floodgate', 'che']);
  t.match(completed.stdout, /check/);
});
