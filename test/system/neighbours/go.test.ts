/**
 * A Go server: net/http sends people to the clean spelling of a path, and routes by the escaped path as GitLab's and
 * RabbitMQ's clients need it.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { ask, askForPage, copyProgram, outputOf, startNeighbour } from '#test/support/neighbour.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';

const folder = temporaryFolder(t);
mkdirSync(join(folder, 'files/docs'), { recursive: true });
writeFileSync(join(folder, 'files/docs/50%de.txt'), 'half\n');
copyProgram('server.go', join(folder, 'main.go'));
await outputOf(['go', 'build', '-o', 'server', 'main.go'], {
  cwd: folder,
  env: { GOCACHE: join(folder, 'cache'), GO111MODULE: 'off', GOFLAGS: '' },
});
const neighbour = await startNeighbour(t, {
  cwd: folder,
  command: (port) => [join(folder, 'server'), `127.0.0.1:${port}`],
});

askForPage(t, neighbour, 'Go');

t.test('bodies both ways, and a reply that is cut', async (t) => {
  const body = Buffer.alloc(300_000, 'go ');
  for (const pieces of [undefined, 40_000]) {
    const sent = { method: 'POST', body, ...(pieces === undefined ? {} : { pieces }) };
    const reply = await neighbour.same(t, `pieces of ${pieces}`, (way) => ask(way, '/echo', sent));
    t.equal(reply.body.length, 300_000);
  }
  await neighbour.same(t, 'the client sees that it is cut', async (way) => {
    await t.rejects(ask(way, '/cut'), { code: 'ECONNRESET' }, way.name);
  });
});
