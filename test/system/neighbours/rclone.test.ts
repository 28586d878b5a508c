/** rclone as a client and a server of WebDAV, and as a server of files for browsers. */
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { ask, outputOf, startNeighbour } from '#test/support/neighbour.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';

const folder = temporaryFolder(t);
const NAMES = ['50%de.txt', 'a b.txt', 'a+b&c=d;e.txt', 'Günter.txt', 'x#y?.txt', '[1]~$.txt'];
for (const name of ['store', 'files/docs', 'local/deep/er'].map((name) => join(folder, name)))
  mkdirSync(name, { recursive: true });
for (const place of ['files/docs', 'local/deep/er'])
  for (const name of NAMES) writeFileSync(join(folder, place, name), `${name}\n`);
writeFileSync(join(folder, 'local/large.bin'), Buffer.alloc(300_000, 'bytes '));

const rclone = (...args: readonly string[]) => ['rclone', '--config', '', '--retries', '1', ...args];
const serve = (kind: string, path: string) =>
  startNeighbour(t, {
    cwd: folder,
    command: (port) => rclone('serve', kind, join(folder, path), '--addr', `127.0.0.1:${port}`),
  });

t.test('WebDAV: copy there, list, move, copy back, delete', async (t) => {
  const neighbour = await serve('webdav', 'store');
  await neighbour.same(t, 'what is stored', async ({ name, origin }) => {
    const run = (...args: readonly string[]) =>
      outputOf(rclone('--webdav-url', origin, '--webdav-vendor', 'other', ...args));
    await run('copy', join(folder, 'local'), ':webdav:');
    const listed = await run('lsf', '-R', ':webdav:');
    await run('moveto', ':webdav:deep/er/50%de.txt', ':webdav:deep/60%ab.txt');
    const moved = await run('cat', ':webdav:deep/60%ab.txt');
    const back = join(folder, name);
    await run('copy', ':webdav:', back);
    const large = readFileSync(join(back, 'large.bin')).length;
    await run('purge', ':webdav:deep');
    await run('deletefile', ':webdav:large.bin');
    const lines = listed.split('\n').sort();
    return {
      lines,
      moved,
      large,
      names: readdirSync(join(back, 'deep/er')).sort(),
      left: await run('lsf', ':webdav:'),
    };
  });
});

t.test('files for browsers', async (t) => {
  const neighbour = await serve('http', 'files');
  t.match(await neighbour.same(t, 'a folder', (way) => ask(way, '/docs/')), {
    status: 200,
    body: '50%25de.txt',
  });
  t.equal((await neighbour.same(t, 'without its slash', (way) => ask(way, '/docs'))).status, 404);
  for (const name of NAMES) {
    const path = `/docs/${encodeURIComponent(name)}`;
    t.match(await neighbour.same(t, path, (way) => ask(way, path)), { status: 200, body: `${name}\n` });
  }
});
