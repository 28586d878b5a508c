/** Runs `files copy` as an operator does, from a folder into a bucket and back. */
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { createSigner } from '#api/auth/signer.ts';
import { openDatabase } from '#api/db/database.ts';
import { migrate } from '#api/db/migrate.ts';
import { createDiskStorage } from '#api/storage/disk.ts';
import { createS3Storage } from '#api/storage/s3.ts';
import type { Storage } from '#api/storage/storage.ts';
import { contentOf } from '#test/api/storage/conformance.ts';
import { countingRandom } from '#test/support/api-app.ts';
import { apiCommand } from '#test/support/cli.ts';
import { startS3 } from '#test/support/s3.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';

const NAMES = [
  'plain.png',
  'ü ä\u0308 ß.txt',
  '名前 مرحبا 😀.mp4',
  "it's (a) [name] {of} ~ours!.csv",
  'a+b=c&d;e,f@g$h.zip',
  '100%25 %2e%2e %zz.docx',
  'what?#fragment <b>"quoted"|*:.png',
  'UPPER.PNG',
  'no type of ours.xyz',
  `${'long '.repeat(36)}.png`,
  'empty.txt',
  'large.zip',
];

/** Creates files on disk with their rows, and an empty bucket. */
async function world(t: Test) {
  const folder = temporaryFolder(t);
  const path = join(folder, 'floodgate.sqlite');
  const db = openDatabase({ kind: 'file', path });
  t.teardown(() => db.destroy());
  await migrate(db);
  const diskIn = (name: string): Storage =>
    createDiskStorage({
      folder: join(folder, name),
      ...{ publicUrl: '', signer: createSigner(Buffer.from('secret')) },
      ...{ clock: Date.now, random: countingRandom() },
    });
  const disk = diskIn('uploads');
  await disk.check();
  const server = await startS3(t);
  const s3 = createS3Storage(server.location, server.credentials);
  t.teardown(() => s3.close());
  const at = '2026-01-01T00:00:00.000Z';
  const addRow = (key: string, more: { size?: number; removedAt?: string }) =>
    db
      .insertInto('files')
      .values({ key, workspaceId: 'ws1', access: 'public', createdAt: at, ...more })
      .execute();
  const files = new Map<string, Buffer>();
  for (const [i, name] of NAMES.entries()) {
    const key = i % 2 === 0 ? `ws1/public/${name}` : `ws1/private/surveys/s1/elements/e1/${name}`;
    const content = Buffer.alloc(
      name === 'empty.txt' ? 0 : name === 'large.zip' ? 7_000_000 : 3_000 + i,
      name,
    );
    files.set(key, content);
    await disk.put({ key, contentType: 'application/octet-stream' }, content);
    await addRow(key, { size: 1 });
  }
  await addRow('ws1/public/granted, never used.png', {});
  await addRow('ws1/public/deleted.png', { size: 1, removedAt: at });
  const env = {
    S3_ENDPOINT_URL: server.endpoint,
    S3_FORCE_PATH_STYLE: '1',
    S3_ACCESS_KEY: server.credentials.accessKey,
    S3_SECRET_KEY: server.credentials.secretKey,
  };
  return {
    ...{ disk, diskIn, s3, server, files },
    run: (from: string, to: string) =>
      apiCommand(['files', 'copy', '--json', '--from', from, '--to', to, '--database', `file:${path}`], {
        ...{ cwd: folder, env },
      }),
    async assertAllIn(storage: Storage): Promise<void> {
      for (const [key, content] of files) t.ok((await contentOf(storage, key))?.equals(content), key);
    },
  };
}

t.test(
  'copies every file into a bucket and back, whatever its name, and only what is not there',
  async (t) => {
    const { assertAllIn, diskIn, files, run, s3 } = await world(t);
    const [first = '', second = ''] = files.keys();
    await s3.put({ key: first, contentType: 'image/png' }, files.get(first) ?? Buffer.alloc(0));
    await s3.put({ key: second, contentType: 'image/png' }, Buffer.from('half of it'));
    const found = await run('uploads', 's3://uploads');
    t.equal(found.code, 0, found.stderr);
    t.strictSame(JSON.parse(found.stdout), { copied: files.size - 1, there: 1, missing: 0 });
    await assertAllIn(s3);
    t.equal(await s3.find('ws1/public/deleted.png'), null, 'a deleted file is not copied back');
    const back = await run('s3://uploads', 'back');
    t.strictSame(JSON.parse(back.stdout), { copied: files.size, there: 0, missing: 0 });
    await assertAllIn(diskIn('back'));
  },
);

t.test('names files that the database has and the store lacks, and copies the others', async (t) => {
  const { disk, files, run } = await world(t);
  const [first = ''] = files.keys();
  await disk.delete(first);
  const found = await run('uploads', 's3://uploads');
  t.equal(found.code, 1);
  t.match(found.stderr, `${first} is missing, although the database has it`);
  t.strictSame(JSON.parse(found.stdout), { copied: files.size - 1, there: 0, missing: 1 });
});

t.test('exits with 3 for a store that is away', async (t) => {
  const { run, server } = await world(t);
  await server.process.stop('SIGKILL');
  const gone = await run('uploads', 's3://uploads');
  t.equal(gone.code, 3);
  t.match(gone.stderr, /^cannot use the bucket uploads at http:/);
});
