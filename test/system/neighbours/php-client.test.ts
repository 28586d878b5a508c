/** PHP with the functions of curl, and with its own streams. */
import t from 'tap';
import { clientFile, reportsOf, reportsWithout, startDemo, takeSteps } from '#test/support/clients/demo.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';

const folder = temporaryFolder(t);
const demo = await startDemo(t);
const run = (library: string) => (origin: string) =>
  reportsOf(['php', clientFile('client.php'), library, origin], folder);

t.test('curl', async (t) => {
  await takeSteps(t, demo, reportsWithout(['events', 'websocket']), run('curl'));
});

t.test('streams', async (t) => {
  const without = ['redirect 307', 'cookies', 'gzip', 'expect', 'upload chunked', 'keep-alive'] as const;
  await takeSteps(t, demo, reportsWithout([...without, 'events', 'websocket']), run('streams'));
});
