/** Waits of the tests: without a deadline, but a test that hangs says why. */
import t from 'tap';
import { start } from '#test/support/process.ts';
import { until } from '#test/support/until.ts';

t.test('a wait ends with the process that it depends on, and shows its output', async (t) => {
  const program = start(['--eval', 'console.log("last words"); process.exitCode = 3']);
  await t.rejects(
    until(() => false, 'the receiver is called', program),
    /ended before: the receiver is called[\s\S]*last words/,
  );
  await t.rejects(program.until(/never written/), /Ended with 3 before [\s\S]*last words/);
});

t.test('notices an event just before the end of the process', async () => {
  const program = start(['--eval', '']);
  await program.ended();
  await until(() => true, 'it has happened', program);
});

t.test('reports a long wait again and again', async (t) => {
  const program = start([
    '--input-type=module-typescript',
    '--eval',
    `import { reportWhileWaiting } from '#test/support/until.ts';
     reportWhileWaiting(() => 'for news; last: none', 1);
     setInterval(() => {}, 1000);`,
  ]);
  t.teardown(() => program.stop('SIGKILL'));
  await program.until(/^Still waiting after 0\.001 s: for news; last: none$/m);
  await program.until(/^Still waiting after 0\.004 s: for news; last: none$/m);
});
