/** Files on disk pass the conformance suite through the API's own upload target. Further tests concern only a disk. */
import { readdirSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { createSigner } from '#api/auth/signer.ts';
import { createDiskStorage } from '#api/storage/disk.ts';
import { type Storage, StorageUnavailable } from '#api/storage/storage.ts';
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
    const form = await storage.grant({ key: 'ws1/public/late.png', contentType: 'image/png', bytesMax: 10 });
    api.advance(120_000);
    t.equal((await post(form, Buffer.from('x'))).status, 403);
    api.advance(-1);
    t.equal((await post(form, Buffer.from('x'))).status, 201);
  });
});

function diskIn(folder: string): Storage {
  return createDiskStorage({
    folder,
    publicUrl: 'http://localhost',
    signer: createSigner(Buffer.from('secret')),
    clock: Date.now,
    random: countingRandom(),
  });
}

const object = { key: 'ws1/public/a.png', contentType: 'image/png' };

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
  ])
    await disk.put({ ...object, key }, Buffer.from('x'));
  const names = readdirSync(folder, { recursive: true, withFileTypes: true });
  const files = names.filter((entry) => entry.isFile()).map(({ name }) => name);
  t.equal(files.length, 5);
  for (const name of files) t.match(name, /^[0-9a-f]{64}$/);
});

t.test('a start deletes the partial files of a dead process, but no recent ones', async (t) => {
  const folder = temporaryFolder(t);
  const disk = diskIn(folder);
  await disk.check();
  writeFileSync(join(folder, 'incoming/old'), 'x');
  writeFileSync(join(folder, 'incoming/young'), 'x');
  const hoursAgo = Date.now() / 1000 - 7200;
  utimesSync(join(folder, 'incoming/old'), hoursAgo, hoursAgo);
  await disk.check();
  t.strictSame(readdirSync(join(folder, 'incoming')), ['young']);
});

t.test('processes that start at once do not disturb the check of each other', async (t) => {
  const disk = diskIn(temporaryFolder(t));
  await t.resolves(Promise.all(Array.from({ length: 30 }, () => disk.check())));
});

t.test('a folder that cannot be used, or disappears: the error says what to do', async (t) => {
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
  await t.rejects(disk.put(object, Buffer.from('x')), expected);

  const moving = diskIn(folder);
  await moving.check();
  rmSync(join(folder, 'incoming'), { recursive: true });
  await t.rejects(moving.put(object, Buffer.from('x')), expected);
  await moving.check();
  await moving.put(object, Buffer.from('x'));
  t.match(await moving.find(object.key), { size: 1 });
});
