/** The conformance suite of storages. The test file of each storage runs it. */
import type { Test } from 'tap';
import type { NewObject, Storage, UploadForm } from '#api/storage/storage.ts';

interface Answer {
  readonly status: number;
  readonly text: string;
}

/** Posts a form as a browser does: fields in their order, then the file. */
export async function post(
  { url, fields }: UploadForm,
  file: Uint8Array,
  changes: Readonly<Record<string, string>> = {},
): Promise<Answer> {
  const form = new FormData();
  for (const [name, value] of Object.entries({ ...fields, ...changes })) form.append(name, value);
  form.append('file', new Blob([new Uint8Array(file)], { type: fields['Content-Type'] ?? '' }), 'blob');
  const reply = await fetch(url, { method: 'POST', body: form });
  return { status: reply.status, text: await reply.text() };
}

export async function contentOf(storage: Storage, key: string): Promise<Buffer | null> {
  const file = await storage.find(key);
  if (file === null || file.size === 0) return file === null ? null : Buffer.alloc(0);
  const stream = await storage.read(key, file, { first: 0, last: file.size - 1 });
  return stream === null ? null : Buffer.concat(await stream.toArray());
}

let count = 0;
function png(bytesMax = 1_000_000): NewObject {
  count += 1;
  const key = `ws1/public/photo ${count} ü--fid--0b9c7f3e-5f0a-4a4e-9d3e-000000000000.png`;
  return { key, contentType: 'image/png', bytesMax };
}

export function conforms(t: Test, storage: Storage): void {
  t.test('a granted upload is stored unchanged, and was missing before', async (t) => {
    for (const size of [0, 1, 65_536, 1_000_000]) {
      const object = png();
      const form = await storage.grant(object);
      t.match(form.fields, { key: object.key, 'Content-Type': 'image/png', success_action_status: '201' });
      t.equal(await storage.find(object.key), null);
      const bytes = Buffer.alloc(size, 'Any bytes at all. ');
      const answer = await post(form, bytes);
      t.equal(answer.status, 201, answer.text);
      t.ok((await contentOf(storage, object.key))?.equals(bytes));
      t.match(await storage.find(object.key), { size, etag: /^"[^"]+"$/ });
    }
  });

  t.test('reads any range of a file, including the first and last byte', async (t) => {
    const { key } = png();
    await storage.put({ key, contentType: 'image/png' }, Buffer.from('0123456789'));
    for (const [first, last, text] of [
      [0, 1, '01'],
      [3, 5, '345'],
      [9, 9, '9'],
      [0, 9, '0123456789'],
    ] as const) {
      const file = await storage.find(key);
      const stream = file && (await storage.read(key, file, { first, last }));
      t.equal(Buffer.concat((await stream?.toArray()) ?? []).toString(), text);
    }
  });

  t.test('stores a file without a grant, replaces it, and deletes it', async (t) => {
    const { key, contentType } = png();
    for (const file of [Buffer.alloc(0), Buffer.alloc(3_000_000, 'large'), Buffer.from('small')]) {
      await storage.put({ key, contentType }, file);
      t.ok((await contentOf(storage, key))?.equals(file), `${file.length} bytes`);
    }
    await storage.delete(key);
    t.equal(await storage.find(key), null);
    await storage.delete(key);
  });

  t.test('keeps files apart whose keys differ in any way', async (t) => {
    const keys = [
      'ws1/public/a.png',
      'ws1/private/a.png',
      'ws2/public/a.png',
      'ws1/public/A.png',
      'ws1/public/á.png',
    ];
    const contentType = 'image/png';
    await Promise.all(keys.map((key) => storage.put({ key, contentType }, Buffer.alloc(50_000, key))));
    for (const key of keys) t.ok((await contentOf(storage, key))?.equals(Buffer.alloc(50_000, key)));
  });

  t.test('the health check succeeds', async (t) => {
    await t.resolves(storage.check());
  });
}

/** Tests forms that differ from the grant, for storages whose server reads policies. */
export function holdsToItsGrants(t: Test, storage: Storage): void {
  t.test('403: a second upload with one grant, and the first file stays', async (t) => {
    const object = png();
    const form = await storage.grant(object);
    t.equal((await post(form, Buffer.from('a'))).status, 201);
    t.match(await post(form, Buffer.from('b')), { status: 403, text: /Ask for a new grant/ });
    t.equal((await contentOf(storage, object.key))?.toString(), 'a');
    const old = { size: 1, etag: '"old"' };
    t.equal(await storage.read(object.key, old, { first: 0, last: 0 }), null, 'another version');
  });

  t.test('one byte too many: EntityTooLarge, which SDKs look for, and no file', async (t) => {
    const object = png(1_000);
    const form = await storage.grant(object);
    for (const bytes of [1_001, 12_000_000])
      t.match(await post(form, Buffer.alloc(bytes)), { status: 400, text: /EntityTooLarge/ });
    t.equal(await storage.find(object.key), null);
    t.equal((await post(form, Buffer.alloc(1_000))).status, 201, 'exactly the granted size');
  });

  t.test('403: another policy or signature, and only the policy names the key', async (t) => {
    const object = png();
    const form = await storage.grant(object);
    const { Policy = '', Signature = '' } = form.fields;
    const forged = Buffer.from(JSON.stringify({ ...object, expiresAt: 9e15 })).toString('base64');
    for (const changes of [
      { Policy: forged },
      { Policy: '' },
      { Signature: '' },
      { Signature: 'zz' },
      { Signature: Signature.slice(0, -2) },
      { Signature: `${Signature}00` },
      { Policy: ` ${Policy}` },
    ])
      t.equal((await post(form, Buffer.from('x'), changes)).status, 403, JSON.stringify(changes));
    t.equal(await storage.find(object.key), null);
    const key = 'ws1/public/other.png';
    t.equal((await post(form, Buffer.from('x'), { key })).status, 201);
    t.equal(await storage.find(key), null);
    t.equal((await contentOf(storage, object.key))?.toString(), 'x');
  });
}
