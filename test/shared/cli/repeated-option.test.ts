/** An option that takes one value is refused if it is given twice: nobody can tell which value is meant. */
import t from 'tap';
import { UsageError } from '#bench/command.ts';
import { runCommand } from '#bench/program.ts';
import { apiCommand, floodgateCommand } from '#test/support/cli.ts';

t.test('each program refuses an option that is given twice', async (t) => {
  const explained = await floodgateCommand([
    'explain',
    'GET /',
    '--from',
    '192.0.2.1',
    '--from',
    '192.0.2.2',
  ]);
  t.equal(explained.code, 2);
  t.match(explained.stderr, /^--from is given twice; give it once/);
  const copied = await apiCommand(['db', 'copy', '--to', 'postgres://a/b', '--to', 'postgres://a/c']);
  t.equal(copied.code, 2);
  t.match(copied.stderr, /^--to is given twice; give it once/);
  for (const option of ['--against', '--rounds'])
    await t.rejects(
      runCommand(['peers', option, '5', option, '6'], async () => {
        t.fail('it starts');
      }),
      { constructor: UsageError, message: new RegExp(`^${option} is given twice; give it once`) },
    );
});

t.test('an option with a list may be repeated', async (t) => {
  const policies = 'policies.yaml';
  const headers = ['-H', 'x-one: 1', '--header', 'x-two: 2'];
  const explained = await floodgateCommand(['explain', 'GET /', '--file', policies, ...headers]);
  t.equal(explained.code, 0, explained.stderr);
  let only: unknown;
  await runCommand(['ladder', '--only', 'quiet', '--only', 'denied,quiet'], async (args) => {
    ({ only } = args as { only: unknown });
  });
  t.strictSame(only, ['denied', 'quiet']);
});
