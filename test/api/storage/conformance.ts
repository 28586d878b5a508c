/** The conformance suite of storages. The test file of each storage runs it. */
import type { Test } from 'tap';
import type { NewObject, Storage, UploadForm } from '#api/storage/storage.ts';

export interface Answer {
  readonly status: number;
  readonly text: string;
}

/** Posts a form as a browser does: fields in their order, then the file. */
export async function post(
  { url, fields }: UploadForm,
  file: Uint8Array,
  changes: Readonly<Record<string, string | null>> = {},
): Promise<Answer> {
  const form = new FormData();
  for (const [name, value] of Object.entries({ ...fields, ...changes })) {
    if (value !== null) form.append(name, value);
  }
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
  t.test('a grant has the address to post to, and fields that fix key and type', async (t) => {
    const object = png();
    const { url, fields } = await storage.grant(object);
    t.match(url, /^http:\/\/127\.0\.0\.1:\d+\//);
    t.match(fields, { key: object.key, 'Content-Type': 'image/png', success_action_status: '201' });
    t.type(fields.Policy, 'string');
    for (const value of Object.values(fields)) t.type(value, 'string');
  });

  for (const size of [0, 1, 65_536, 1_000_000]) {
    t.test(`stores ${size} bytes unchanged, and answers 201`, async (t) => {
      const object = png();
      const bytes = Buffer.alloc(size, 'Any bytes at all. ');
      const answer = await post(await storage.grant(object), bytes);
      t.equal(answer.status, 201, answer.text);
      t.match(answer.text, /<PostResponse/);
      t.ok((await contentOf(storage, object.key))?.equals(bytes));
      const found = await storage.find(object.key);
      t.equal(found?.size, size);
      t.match(found?.etag, /^"[^"]+"$/);
      t.ok((found?.modifiedAt ?? 0) > Date.UTC(2026, 0, 1));
    });
  }

  t.test('reads any range of a file, including the first and last byte', async (t) => {
    const object = png();
    await post(await storage.grant(object), Buffer.from('0123456789'));
    for (const [first, last, text] of [
      [0, 1, '01'],
      [3, 5, '345'],
      [9, 9, '9'],
      [0, 9, '0123456789'],
    ] as const) {
      const file = await storage.find(object.key);
      const stream = file && (await storage.read(object.key, file, { first, last }));
      t.equal(Buffer.concat((await stream?.toArray()) ?? []).toString(), text);
    }
  });

  t.test('stores a file without a grant, and a later one replaces it', async (t) => {
    const { key, contentType } = png();
    for (const file of [Buffer.alloc(0), Buffer.alloc(3_000_000, 'large'), Buffer.from('small')]) {
      await storage.put({ key, contentType }, file);
      t.ok((await contentOf(storage, key))?.equals(file), `${file.length} bytes`);
    }
  });

  t.test('a file that was never uploaded is missing', async (t) => {
    t.equal(await storage.find('ws1/public/nothing.png'), null);
    const object = png();
    await storage.grant(object);
    t.equal(await storage.find(object.key), null, 'a granted file does not exist before its upload');
  });

  t.test('deletes a file, and accepts that it is missing', async (t) => {
    const object = png();
    await post(await storage.grant(object), Buffer.from('x'));
    await storage.delete(object.key);
    t.equal(await storage.find(object.key), null);
    await storage.delete(object.key);
  });

  t.test('keeps files apart whose keys differ in any way', async (t) => {
    const keys = [
      'ws1/public/a.png',
      'ws1/private/a.png',
      'ws2/public/a.png',
      'ws1/public/A.png',
      'ws1/public/á.png',
    ];
    for (const key of keys) await post(await storage.grant({ ...png(), key }), Buffer.from(key));
    for (const key of keys) t.equal((await contentOf(storage, key))?.toString(), key);
  });

  t.test('concurrent uploads do not mix', async (t) => {
    const objects = Array.from({ length: 20 }, () => png());
    const answers = await Promise.all(
      objects.map(async (object) => post(await storage.grant(object), Buffer.alloc(50_000, object.key))),
    );
    t.ok(answers.every(({ status }) => status === 201));
    for (const { key } of objects) t.ok((await contentOf(storage, key))?.equals(Buffer.alloc(50_000, key)));
  });

  t.test('400: a form without a file', async (t) => {
    const { url, fields } = await storage.grant(png());
    const form = new FormData();
    for (const [name, value] of Object.entries(fields)) form.append(name, value);
    const reply = await fetch(url, { method: 'POST', body: form });
    t.equal(reply.status, 400);
    t.match(await reply.text(), /InvalidArgument/);
  });

  t.test('412: a body that is not a form', async (t) => {
    const { url } = await storage.grant(png());
    const reply = await fetch(url, {
      method: 'POST',
      body: '{}',
      headers: { 'content-type': 'application/json' },
    });
    t.equal(reply.status, 412);
    t.match(await reply.text(), /PreconditionFailed/);
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
    const [a, b] = [Buffer.alloc(300_000, 'a'), Buffer.alloc(300_000, 'b')];
    t.equal((await post(form, a)).status, 201);
    t.match(await post(form, b), { status: 403, text: /AccessDenied.*Ask for a new grant/ });
    t.ok((await contentOf(storage, object.key))?.equals(a));
    const old = { size: 300_000, etag: '"old"', modifiedAt: 0 };
    t.equal(await storage.read(object.key, old, { first: 0, last: 1 }), null, 'another version');
  });

  t.test('two concurrent uploads with one grant: one is stored, whole', async (t) => {
    const object = png();
    const form = await storage.grant(object);
    const contents = [Buffer.alloc(300_000, 'a'), Buffer.alloc(300_000, 'b')];
    const answers = await Promise.all(contents.map((content) => post(form, content)));
    t.strictSame(answers.map(({ status }) => status).toSorted(), [201, 403]);
    const winner = contents[answers.findIndex(({ status }) => status === 201)];
    t.ok(winner && (await contentOf(storage, object.key))?.equals(winner));
  });

  t.test('one byte too many: 400 EntityTooLarge, and no file', async (t) => {
    const object = png(1000);
    const answer = await post(await storage.grant(object), Buffer.alloc(1001));
    t.equal(answer.status, 400);
    t.match(answer.text, /EntityTooLarge/);
    t.equal(await storage.find(object.key), null);
    t.equal(
      (await post(await storage.grant(object), Buffer.alloc(1000))).status,
      201,
      'a file of exactly the granted size is accepted',
    );
  });

  for (const [title, changes] of [
    ['another key', { key: 'ws1/public/other.png' }],
    ['another type', { 'Content-Type': 'text/html' }],
    ['another status', { success_action_status: '200' }],
    ['another policy', { Policy: Buffer.from('{}').toString('base64') }],
    ['no policy', { Policy: null }],
    ['no type', { 'Content-Type': null }],
  ] as const) {
    t.test(`403: ${title} than granted`, async (t) => {
      const object = png();
      const answer = await post(await storage.grant(object), Buffer.from('x'), changes);
      t.equal(answer.status, 403);
      t.match(answer.text, /<Code>AccessDenied<\/Code>/);
      t.equal(await storage.find(object.key), null);
    });
  }
}
