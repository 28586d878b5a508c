/** Python's http.server as the application. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { ask, follow, startNeighbour } from '#test/support/neighbour.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';

const folder = temporaryFolder(t);
mkdirSync(join(folder, 'docs'));
writeFileSync(join(folder, 'docs/50%de.txt'), 'half\n');
const neighbour = await startNeighbour(t, {
  cwd: folder,
  command: (port) => ['/usr/bin/python3', '-m', 'http.server', '--bind', '127.0.0.1', String(port)],
});

t.test('a folder without its slash, its list, and a file in it', async (t) => {
  const replies = await neighbour.same(t, 'follows', (way) => follow(way, '/docs'));
  t.match(replies, [{ status: 301 }, { status: 200, body: 'href="50%25de.txt"' }]);
  const file = await neighbour.same(t, 'a file', (way) => ask(way, '/docs/50%25de.txt'));
  t.match(file, { status: 200, body: 'half\n' });
  const { length } = await neighbour.same(t, 'the root', (way) => follow(way, '/'));
  t.equal(length, 1);
});
