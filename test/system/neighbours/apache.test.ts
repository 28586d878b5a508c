/** Apache as the application: folders without and with their slash, lists of folders, and WebDAV with cadaver. */
import { mkdirSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { apacheCommand } from '#test/support/apache.ts';
import { askForPage, runProgram, startNeighbour } from '#test/support/neighbour.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';

const folder = temporaryFolder(t);
mkdirSync(join(folder, 'site/docs/list'), { recursive: true });
mkdirSync(join(folder, 'site/dav'), { recursive: true });
/** The ETag of a file that changed in this second is weak, and is another one a moment later. */
const YESTERDAY = Date.now() / 1000 - 86_400;
for (const [name, text] of [
  ['index.html', '<h1>Docs</h1>\n'],
  ['list/50%de.txt', 'half\n'],
  ['list/a b~c.txt', 'odd\n'],
] as const) {
  writeFileSync(join(folder, 'site/docs', name), text);
  utimesSync(join(folder, 'site/docs', name), YESTERDAY, YESTERDAY);
}
const neighbour = await startNeighbour(t, {
  cwd: folder,
  command: (port) =>
    apacheCommand(
      folder,
      port,
      ['autoindex', 'dav', 'dav_fs'],
      `DavLockDB ${folder}/locks
<Directory ${folder}/site/docs/list>
  Options Indexes
</Directory>
<Location /dav>
  Dav On
</Location>`,
    ),
});

askForPage(t, neighbour, 'Apache');

t.test('cadaver', async (t) => {
  const local = join(folder, 'local.txt');
  writeFileSync(local, 'stored\n');
  const commands = [
    'mkcol new',
    `put ${local} new/a.txt`,
    'ls new',
    'propset new/a.txt colour green',
    'propget new/a.txt colour',
    'copy new/a.txt new/b.txt',
    'move new/b.txt new/50%de.txt',
    'cd new',
    'ls',
    'cat a.txt',
    'lock a.txt',
    'delete 50%de.txt',
    'unlock a.txt',
    'cd ..',
    'rmcol new',
    'ls',
    'quit',
  ];
  const { stdout } = await neighbour.same(t, 'everything that it prints', async ({ origin }) => {
    const { stdout, code } = await runProgram(['cadaver', `${origin}/dav/`], {
      input: commands.map((line) => `${line}\n`).join(''),
      env: { HOME: folder },
    });
    return { stdout: stdout.replaceAll(/opaquelocktoken:\S+|\w{3} +\d+ \d\d:\d\d/g, ''), code };
  });
  t.notMatch(stdout, /failed|error/i);
  t.match(stdout, /stored/);
});
