/** Apache as the application: folders without and with their slash, lists of folders, and WebDAV with cadaver. */
import { mkdirSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { apacheCommand } from '#test/support/apache.ts';
import { ask, follow, runProgram, startNeighbour } from '#test/support/neighbour.ts';
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

t.test('a folder without its slash', async (t) => {
  const replies = await neighbour.same(t, 'follows', (way) => follow(way, '/docs?a=1'));
  t.match(replies, [{ status: 301 }, { status: 200, body: '<h1>Docs</h1>\n' }]);
});

t.test('the list of a folder, and files with odd names in it', async (t) => {
  const [, list] = await neighbour.same(t, 'list', (way) => follow(way, '/docs/list'));
  const names = [...(list?.body ?? '').matchAll(/href="([^"?/]+)"/g)].map(([, name = '']) => name);
  t.strictSame(names.sort(), ['50%25de.txt', 'a%20b~c.txt']);
  for (const name of names) {
    const path = `/docs/list/${name}`;
    t.equal((await neighbour.same(t, path, (way) => ask(way, path))).status, 200);
  }
});

t.test('other spellings of a path', async (t) => {
  for (const path of [
    '/docs//',
    '/docs/list//50%25de.txt',
    '/%64ocs/',
    '/docs/list/a%20b%7Ec.txt',
    '/docs%2Flist/',
  ])
    await neighbour.same(t, path, (way) => ask(way, path));
});

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
