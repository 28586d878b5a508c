/** LWP, the client of most Perl programs. */
import t from 'tap';
import { clientFile, reportsOf, reportsWithout, startDemo, takeSteps } from '#test/support/clients/demo.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';

const folder = temporaryFolder(t);
const demo = await startDemo(t);

t.test('LWP', async (t) => {
  await takeSteps(t, demo, reportsWithout(['websocket']), (origin) =>
    reportsOf(['perl', clientFile('client.pl'), origin], folder),
  );
});
