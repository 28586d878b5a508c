/** Files on disk pass the conformance suite through the API's own upload target. Further tests concern only a disk. */
import { createHash } from 'node:crypto';
import { mkdirSync, readdirSync, rmSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import t from 'tap';
import { createSigner } from '#api/auth/signer.ts';
import { createDiskStorage } from '#api/storage/disk.ts';
import { type Storage, StorageUnavailable, UploadAborted } from '#api/storage/storage.ts';
import { countingRandom, startApi } from '#test/support/api-app.ts';
import { addFileRow } from '#test/support/files.ts';
import { freePort } from '#test/support/ports.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';
import { conforms, holdsToItsGrants, post } from './conformance.ts';

t.test('passes the conformance suite', async (t) => {
  const port = await freePort();
  const api = await startApi(t, { env: { PUBLIC_URL: `http://127.0.0.1:${port}` } });
  await api.app.listen({ port, host: '127.0.0.1' });
  // The upload target accepts only files with a row.
  const { storage: disk } = api.context;
  const storage: Storage = {
    ...disk,
    async grant(object) {
      await addFileRow(api, object.key);
      return disk.grant(object);
    },
  };
  conforms(t, storage);
  holdsToItsGrants(t, storage);

  t.test('403: a grant is valid for two minutes, to the millisecond', async (t) => {
    const object = { key: 'ws1/public/late.png', contentType: 'image/png', bytesMax: 10 };
    const form = await storage.grant(object);
    api.advance(119_999);
    t.equal((await post(form, Buffer.from('x'))).status, 201);
    api.advance(1);
    const late = await post(form, Buffer.from('y'));
    t.equal(late.status, 403);
    t.match(late.text, /Policy expired/);
  });
});

function diskIn(folder: string, now = Date.now()) {
  return createDiskStorage({
    folder,
    publicUrl: 'http://localhost',
    signer: createSigner(Buffer.from('secret')),
    clock: () => now,
    random: countingRandom(),
  });
}

const object = { key: 'ws1/public/a.png', contentType: 'image/png', bytesMax: 100 };
const pathOf = (folder: string, key: string): string => {
  const hash = createHash('sha256').update(key).digest('hex');
  return join(folder, 'objects', hash.slice(0, 2), hash);
};

t.test('text of a caller never becomes part of a path', async (t) => {
  const folder = temporaryFolder(t);
  const disk = diskIn(folder);
  await disk.check();
  for (const key of [
    '../../etc/passwd',
    '/etc/passwd',
    'ws1/public/CON.png',
    '..\\..\\x',
    `ws1/public/${'ü'.repeat(400)}.png`,
  ]) {
    await disk.receive({ ...object, key }, Readable.from([Buffer.from('x')]));
  }
  const names = readdirSync(folder, { recursive: true, withFileTypes: true });
  const files = names.filter((entry) => entry.isFile()).map(({ name }) => name);
  t.equal(files.length, 5);
  for (const name of files) t.match(name, /^[0-9a-f]{64}$/);
});

t.test('a symbolic link or a folder in place of a file counts as missing', async (t) => {
  const folder = temporaryFolder(t);
  const disk = diskIn(folder);
  await disk.check();
  const secret = join(folder, 'secret');
  writeFileSync(secret, 'secret');
  for (const [key, make] of [
    ['ws1/public/link.png', (path: string) => symlinkSync(secret, path)],
    ['ws1/public/folder.png', (path: string) => mkdirSync(path)],
  ] as const) {
    const path = pathOf(folder, key);
    mkdirSync(join(path, '..'), { recursive: true });
    make(path);
    t.equal(await disk.find(key), null);
  }
});

t.test('an interrupted upload leaves no file, and reports whose fault it was', async (t) => {
  const folder = temporaryFolder(t);
  const disk = diskIn(folder);
  await disk.check();
  const broken = Readable.from(
    (async function* () {
      yield Buffer.from('half');
      throw new Error('gone');
    })(),
  );
  await t.rejects(disk.receive(object, broken), UploadAborted);
  t.strictSame(readdirSync(join(folder, 'incoming')), []);
  t.equal(await disk.find(object.key), null);
});

t.test('the sweep deletes the partial files of a dead process, but no recent ones', async (t) => {
  const folder = temporaryFolder(t);
  const disk = diskIn(folder);
  await disk.check();
  writeFileSync(join(folder, 'incoming/old'), 'x');
  writeFileSync(join(folder, 'incoming/young'), 'x');
  const hoursAgo = Date.now() / 1000 - 7200;
  utimesSync(join(folder, 'incoming/old'), hoursAgo, hoursAgo);
  await disk.sweep();
  t.strictSame(readdirSync(join(folder, 'incoming')), ['young']);
  rmSync(join(folder, 'incoming'), { recursive: true });
  await t.rejects(disk.sweep(), StorageUnavailable);
});

t.test('a folder that cannot be used: the error says what to do', async (t) => {
  const folder = temporaryFolder(t);
  const file = join(folder, 'a-file');
  writeFileSync(file, '');
  const disk = diskIn(join(file, 'below'));
  const expected = {
    constructor: StorageUnavailable,
    fault: 'disk_error',
    message: /^STORAGE_PATH: cannot use .*; give a folder/,
  };
  await t.rejects(disk.check(), expected);
  await t.rejects(disk.find(object.key), expected);
  await t.rejects(disk.delete(object.key), expected);
  await t.rejects(disk.receive(object, Readable.from([Buffer.from('x')])), expected);
});

t.test('a folder that disappears while the service runs is a fault, and recovers', async (t) => {
  const folder = temporaryFolder(t);
  const disk = diskIn(folder);
  await disk.check();
  rmSync(join(folder, 'incoming'), { recursive: true });
  await t.rejects(disk.receive(object, Readable.from([Buffer.from('x')])), StorageUnavailable);
  await disk.check();
  t.match(await disk.receive(object, Readable.from([Buffer.from('x')])), {
    kind: 'stored',
    size: 1,
  });
});
