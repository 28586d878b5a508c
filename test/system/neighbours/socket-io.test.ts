/** Socket.IO, which polls first and then changes to WebSocket. */
import { join } from 'node:path';
import t from 'tap';
import { folderWith } from '#test/runner/npm-programs.ts';
import { copyProgram, outputOf, startNeighbour } from '#test/support/neighbour.ts';

const folder = folderWith(t, 'socket.io');
copyProgram('socket-io-server.cjs', join(folder, 'server.cjs'));
/** Writes what it sees as JSON: the transports in turn, and the answers. */
copyProgram('socket-io-client.cjs', join(folder, 'client.cjs'));
const neighbour = await startNeighbour(t, {
  cwd: folder,
  command: (port) => [process.execPath, 'server.cjs', String(port)],
});

for (const transports of ['polling,websocket', 'polling', 'websocket']) {
  t.test(transports, async (t) => {
    const seen = await neighbour.same(t, 'transports and answers', async ({ origin }) =>
      JSON.parse(await outputOf([process.execPath, 'client.cjs', origin, transports], { cwd: folder })),
    );
    const names: unknown[] = seen.filter((value: unknown) => typeof value === 'string');
    t.strictSame(names.sort(), [...transports.split(','), 'a/b c', 'room'].sort());
  });
}
