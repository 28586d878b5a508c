/** net/http of Go. */
import { copyFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { clientFile, reportsOf, reportsWithout, startDemo, takeSteps } from '#test/support/clients/demo.ts';
import { outputOf } from '#test/support/neighbour.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';

const folder = temporaryFolder(t);
copyFileSync(clientFile('client.go'), join(folder, 'main.go'));
const env = { HOME: folder, GOCACHE: join(folder, 'cache'), CGO_ENABLED: '0', GOFLAGS: '-mod=mod' };
const [demo] = await Promise.all([
  startDemo(t),
  outputOf(['go', 'build', '-o', 'client', 'main.go'], { cwd: folder, env }),
]);

t.test('net/http', async (t) => {
  await takeSteps(t, demo, reportsWithout(['websocket']), (origin) =>
    reportsOf([join(folder, 'client'), origin], folder),
  );
});
