/** restic, which makes backups, with the REST server of rclone. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { outputOf, startNeighbour } from '#test/support/neighbour.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';

const folder = temporaryFolder(t);
mkdirSync(join(folder, 'local'));
mkdirSync(join(folder, 'store'));
writeFileSync(join(folder, 'local/large.bin'), Buffer.alloc(300_000, 'bytes '));
const neighbour = await startNeighbour(t, {
  cwd: folder,
  command: (port) => [
    'rclone',
    '--config',
    '',
    'serve',
    'restic',
    join(folder, 'store'),
    '--addr',
    `127.0.0.1:${port}`,
  ],
});

t.test('a repository is made, filled, checked and restored', async (t) => {
  await neighbour.same(t, 'what is restored', async ({ name, origin }) => {
    const repository = `rest:${origin}/${name.replaceAll(' ', '-')}/`;
    const restic = (...args: readonly string[]) =>
      outputOf(['restic', '--no-cache', '-q', '-r', repository, ...args], {
        cwd: folder,
        env: { RESTIC_PASSWORD: 'of the test', GOMAXPROCS: '1' },
      });
    await restic('init');
    await restic('backup', 'local', '--host', 'a');
    writeFileSync(join(folder, 'local/small.txt'), name);
    await restic('backup', 'local', '--host', 'a');
    await restic('check');
    const snapshots: unknown[] = JSON.parse(await restic('snapshots', '--json'));
    await restic('forget', '--keep-last', '1', '--prune');
    await restic('restore', 'latest', '--target', name);
    return {
      snapshots: snapshots.length,
      small: readFileSync(join(folder, name, 'local/small.txt'), 'utf8') === name,
      large: readFileSync(join(folder, name, 'local/large.bin')).length,
    };
  });
});
