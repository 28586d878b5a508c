/** requests and httpx, the clients of most Python programs. */
import t from 'tap';
import { clientFile, reportsOf, reportsWithout, startDemo, takeSteps } from '#test/support/clients/demo.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';

const folder = temporaryFolder(t);
const demo = await startDemo(t);
const run = (library: string) => (origin: string) =>
  reportsOf(['/usr/bin/python3', clientFile('client.py'), library, origin], folder);
const without = ['expect', 'websocket'] as const;

t.test('requests', async (t) => {
  // It decodes unreserved characters itself.
  const encoded = '200 GET /echo/a%20b~c%2Fd;e=f//g?x=%2F+%20&y';
  await takeSteps(t, demo, reportsWithout(without, { encoded }), run('requests'));
});

t.test('httpx', async (t) => {
  await takeSteps(t, demo, reportsWithout(without), run('httpx'));
});
