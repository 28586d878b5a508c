/** The page for those who run Formbricks: its command shows what it says. */
import t from 'tap';
import { readPage } from '#test/docs/pages.ts';
import { startShell } from '#test/docs/shell.ts';
import { startStack } from '#test/support/stack.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';

const [, look] = readPage('docs/in-front-of-formbricks.md').blocks;

t.test('the command that shows that it works', async (t) => {
  const { origin } = await startStack(t);
  const shell = startShell(t, temporaryFolder(t));
  const output = await shell.run(look?.text.replace('http://localhost:8080', origin) ?? '');
  t.match(output, /^x-ratelimit-limit: 100\r$/m);
});
