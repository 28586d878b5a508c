/** fetch (undici) and WebSocket of Node.js. */
import t from 'tap';
import { clientFile, reportsOf, reportsWithout, startDemo, takeSteps } from '#test/support/clients/demo.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';

const folder = temporaryFolder(t);
const demo = await startDemo(t);

t.test('fetch and WebSocket', async (t) => {
  await takeSteps(t, demo, reportsWithout(['cookies', 'expect']), (origin) =>
    reportsOf([process.execPath, clientFile('client.mjs'), origin], folder),
  );
});
