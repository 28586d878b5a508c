/** Python's http.server as the application. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { askForPage, startNeighbour } from '#test/support/neighbour.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';

const folder = temporaryFolder(t);
mkdirSync(join(folder, 'docs'));
writeFileSync(join(folder, 'docs/50%de.txt'), 'half\n');
const neighbour = await startNeighbour(t, {
  cwd: folder,
  command: (port) => ['/usr/bin/python3', '-m', 'http.server', '--bind', '127.0.0.1', String(port)],
});

askForPage(t, neighbour, "Python's http.server");
