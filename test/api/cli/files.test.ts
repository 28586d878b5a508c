/** Runs `files copy` as an operator does, from a folder into a bucket and back. */
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { GetObjectCommand, HeadObjectCommand, S3Client } from '@aws-sdk/client-s3';
import SqliteDatabase from 'better-sqlite3';
import t, { type Test } from 'tap';
import { createSigner } from '#api/auth/signer.ts';
import { createDiskStorage } from '#api/storage/disk.ts';
import { createS3Storage } from '#api/storage/s3.ts';
import type { Storage } from '#api/storage/storage.ts';
import { contentOf } from '#test/api/storage/conformance.ts';
import { countingRandom } from '#test/support/api-app.ts';
import { apiCli, apiCommand } from '#test/support/cli.ts';
import { emptyFile } from '#test/support/copies.ts';
import { type S3Server, startS3 } from '#test/support/s3.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';

const ODD = [
  'plain.png',
  'with space  twice.pdf',
  'ü ä\u0308 ß.txt',
  '名前 مرحبا 😀.mp4',
  "it's (a) [name] {of} ~ours!.csv",
  'a+b=c&d;e,f@g$h.zip',
  '100%25 %2e%2e %zz.docx',
  'what?#fragment.jpg',
  '<b>"quoted"|*:.png',
  '.hidden.png',
  'UPPER.PNG',
  'upper.png',
  'no type of ours.xyz',
  `${'long '.repeat(36)}.png`,
];
const EMPTY = 'empty.txt';
const LARGE = 'large.zip';

interface World {
  readonly folder: string;
  readonly database: string;
  readonly disk: Storage;
  readonly s3: Storage;
  readonly server: S3Server;
  readonly env: Readonly<Record<string, string>>;
  readonly files: ReadonlyMap<string, Buffer>;
  execute(statement: string, ...values: readonly (string | number | null)[]): void;
}

function diskIn(folder: string): Storage {
  return createDiskStorage({
    folder,
    publicUrl: '',
    signer: createSigner(Buffer.from('secret')),
    clock: Date.now,
    random: countingRandom(),
  });
}

/** Creates files on disk with their rows, and an empty bucket. */
async function world(t: Test): Promise<World> {
  const folder = temporaryFolder(t);
  const path = join(folder, 'floodgate.sqlite');
  await emptyFile(path);
  const sqlite = new SqliteDatabase(path);
  t.teardown(() => sqlite.close());
  const disk = diskIn(join(folder, 'uploads'));
  await disk.check();
  const server = await startS3(t);
  const s3 = createS3Storage(server.location, server.credentials);
  t.teardown(() => s3.close());
  const files = new Map<string, Buffer>();
  const execute: World['execute'] = (statement, ...values) => {
    sqlite.prepare(statement).run(...values);
  };
  const names = [...ODD, EMPTY, LARGE];
  for (const [at, name] of names.entries()) {
    const rest = at % 3 === 0 ? name : `surveys/s1/elements/e1/${name}`;
    const key = `ws${at % 2}/${at % 3 === 0 ? 'public' : 'private'}/${rest}`;
    const content =
      name === EMPTY ? Buffer.alloc(0) : Buffer.alloc(name === LARGE ? 7_000_000 : 3_000 + at, name);
    files.set(key, content);
    await disk.put({ key, contentType: 'application/octet-stream' }, content);
    addRow(execute, key, content.length);
  }
  return {
    folder,
    database: `file:${path}`,
    disk,
    s3,
    server,
    files,
    execute,
    env: {
      S3_ENDPOINT_URL: server.endpoint,
      S3_FORCE_PATH_STYLE: '1',
      S3_ACCESS_KEY: server.credentials.accessKey,
      S3_SECRET_KEY: server.credentials.secretKey,
    },
  };
}

function addRow(execute: World['execute'], key: string, size: number | null, isRemoved = false): void {
  const [workspaceId = '', access = ''] = key.split('/');
  const at = '2026-01-01T00:00:00.000Z';
  execute(
    `insert into "files" ("key", "workspaceId", "access", "size", "createdAt", "removedAt") values (?, ?, ?, ?, ?, ?)`,
    ...[key, workspaceId, access, size, at, isRemoved ? at : null],
  );
}

async function assertAllIn(t: Test, storage: Storage, files: World['files']): Promise<void> {
  for (const [key, content] of files) t.ok((await contentOf(storage, key))?.equals(content), key);
}

t.test('copies every file into a bucket and back, whatever its name, with its type', async (t) => {
  const { folder, database, s3, server, env, files, execute } = await world(t);
  addRow(execute, 'ws0/public/granted, never used.png', null);
  addRow(execute, 'ws0/public/deleted.png', 5, true);
  const into = ['files', 'copy', '--from', './uploads', '--to', 's3://uploads', '--database', database];
  const first = await apiCli([...into, '--json'], { cwd: folder, env });
  t.equal(first.code, 0, first.stderr);
  t.strictSame(JSON.parse(first.stdout), { copied: files.size, there: 0, missing: 0 });
  await assertAllIn(t, s3, files);

  const { accessKey: accessKeyId, secretKey: secretAccessKey } = server.credentials;
  const client = new S3Client({
    ...server.location,
    credentials: { accessKeyId, secretAccessKey },
    endpoint: server.endpoint,
  });
  t.teardown(() => client.destroy());
  const typeOf = async (end: string): Promise<string | undefined> => {
    const Key = [...files.keys()].find((key) => key.endsWith(end)) ?? '';
    return (await client.send(new HeadObjectCommand({ Bucket: 'uploads', Key }))).ContentType;
  };
  t.equal(await typeOf('plain.png'), 'image/png');
  t.equal(await typeOf('UPPER.PNG'), 'image/png');
  t.equal(await typeOf('twice.pdf'), 'application/pdf');
  t.equal(await typeOf('.xyz'), 'application/octet-stream');
  await t.rejects(
    client.send(new GetObjectCommand({ Bucket: 'uploads', Key: 'ws0/public/deleted.png' })),
    { name: 'NoSuchKey' },
    'a deleted file is not copied back',
  );

  const again = await apiCommand(into, { cwd: folder, env });
  t.equal(again.code, 0, again.stderr);
  t.match(again.stdout, /^copied +0$/m);
  t.match(again.stdout, new RegExp(`^there already +${files.size}$`, 'm'));

  const back = ['files', 'copy', '--from', 's3://uploads', '--to', 'back', '--database', database, '--json'];
  const returned = await apiCommand(back, { cwd: folder, env });
  t.equal(returned.code, 0, returned.stderr);
  t.match(JSON.parse(returned.stdout), { copied: files.size, missing: 0 });
  await assertAllIn(t, diskIn(join(folder, 'back')), files);
  t.match(JSON.parse((await apiCommand(back, { cwd: folder, env })).stdout), {
    copied: 0,
    there: files.size,
  });
});

t.test('copies what is not there, and replaces files of another size', async (t) => {
  const { folder, database, s3, env, files } = await world(t);
  const [first = '', second = ''] = files.keys();
  await s3.put({ key: first, contentType: 'image/png' }, files.get(first) ?? Buffer.alloc(0));
  await s3.put({ key: second, contentType: 'image/png' }, Buffer.from('half of it'));
  const args = [
    'files',
    'copy',
    '--json',
    '--from',
    'uploads',
    '--to',
    's3://uploads',
    '--database',
    database,
  ];
  const found = await apiCommand(args, { cwd: folder, env });
  t.match(JSON.parse(found.stdout), { copied: files.size - 1, there: 1, missing: 0 });
  await assertAllIn(t, s3, files);
});

t.test('names files that the database has and the store lacks, and copies the others', async (t) => {
  const { folder, database, disk, env, files } = await world(t);
  const [first = '', ...others] = files.keys();
  await disk.delete(first);
  const args = ['files', 'copy', '--from', 'uploads', '--to', 's3://uploads', '--database', database];
  const found = await apiCommand(args, { cwd: folder, env });
  t.equal(found.code, 1);
  t.match(found.stderr, `${first} is missing, although the database has it`);
  t.match(found.stdout, new RegExp(`^copied +${others.length}$`, 'm'));
  t.match(found.stdout, /^missing +1$/m);
});

t.test('a store that becomes unavailable ends the copy with an error message', async (t) => {
  const { folder, database, server, env } = await world(t);
  await server.process.stop('SIGKILL');
  const args = ['files', 'copy', '--from', 'uploads', '--to', 's3://uploads', '--database', database];
  const gone = await apiCommand(args, { cwd: folder, env });
  t.equal(gone.code, 3);
  t.match(gone.stderr, /^cannot use the bucket uploads at http:/);
  rmSync(join(folder, 'uploads'), { recursive: true });
});

t.test('exits with 2 or 3 for wrong arguments, and names them', async (t) => {
  const { folder, database, env } = await world(t);
  const run = (...args: readonly string[]) => apiCommand(['files', 'copy', ...args], { cwd: folder, env });
  for (const [args, code, message, at = database] of [
    [['--from', 'uploads'], 2, /--to is missing/],
    [['--from', 'uploads', '--to', 's3://'], 2, /--to: give a folder such as .*, or s3:\/\/BUCKET/],
    [['--from', 'uploads', '--to', 's3://a/b'], 2, /--to: give a folder/],
    [['--from', 's3://uploads', '--to', 's3://others'], 2, /both are buckets.*aws s3 sync/],
    [['--from', 'uploads', '--to', 's3://NO'], 2, /S3_BUCKET_NAME: "NO" is not a bucket's name/],
    [['--from', 'uploads', '--to', 'x'], 3, /^cannot open .*none/, 'file:none'],
    [['--from', 'none', '--to', 'x'], 3, /none is not a folder of uploads/],
  ] as const) {
    const found = await run('--database', at, ...args);
    t.equal(found.code, code, `${args.join(' ')}: ${found.stderr}`);
    t.match(found.stderr, message);
  }
});
