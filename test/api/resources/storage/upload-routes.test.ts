/** Uploads on real sockets: valid and invalid forms, which leave nothing behind. */
import { spawnSync } from 'node:child_process';
import { readdirSync, statSync } from 'node:fs';
import { request } from 'node:http';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import type { UploadForm } from '#api/storage/storage.ts';
import { startApi, type TestApi, workspaceId } from '#test/support/api-app.ts';
import { addFileRow } from '#test/support/files.ts';
import { freePort } from '#test/support/ports.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';
import { until } from '#test/support/until.ts';

interface Target {
  readonly api: TestApi;
  readonly port: number;
  readonly form: UploadForm & { readonly key: string };
  /** Counts files that are being uploaded, and finished ones. */
  left(): { readonly incoming: number; readonly objects: number };
  /** Counts the bytes of unfinished uploads on the disk. */
  incomingBytes(): number;
}

const path = `/api/v1/client/${workspaceId}/storage/upload`;

async function listening(
  t: Test,
  bytesMax = 100_000,
  env: Readonly<Record<string, string>> = {},
): Promise<Target> {
  const port = await freePort();
  const api = await startApi(t, { env: { PUBLIC_URL: `http://127.0.0.1:${port}`, ...env } });
  await api.app.listen({ port, host: '127.0.0.1' });
  const key = `${workspaceId}/private/a--fid--x.png`;
  await addFileRow(api, key);
  const form = await api.context.storage.grant({ key, contentType: 'image/png', bytesMax });
  const { storage } = api.context.config;
  const folder = storage.kind === 'disk' ? storage.path : '';
  const files = (name: string): number =>
    readdirSync(join(folder, name), { recursive: true, withFileTypes: true }).filter((entry) =>
      entry.isFile(),
    ).length;
  return {
    api,
    port,
    form: { ...form, key },
    left: () => ({ incoming: files('incoming'), objects: files('objects') }),
    incomingBytes: () =>
      readdirSync(join(folder, 'incoming'))
        .map((name) => statSync(join(folder, 'incoming', name)).size)
        .reduce((sum, size) => sum + size, 0),
  };
}

const boundary = 'the-boundary';
const multipart = { 'content-type': `multipart/form-data; boundary=${boundary}` };

function part(disposition: string, content: string | Buffer): Buffer {
  return Buffer.concat([
    Buffer.from(`--${boundary}\r\nContent-Disposition: form-data; ${disposition}\r\n\r\n`),
    Buffer.from(content),
    Buffer.from('\r\n'),
  ]);
}

function fieldParts(fields: Readonly<Record<string, string>>): Buffer {
  return Buffer.concat(Object.entries(fields).map(([name, value]) => part(`name="${name}"`, value)));
}

const end = Buffer.from(`--${boundary}--\r\n`);

/** The head of a request that uploads these bytes. */
const headOf = (bytes: Buffer, connection = 'keep-alive'): string =>
  `POST ${path} HTTP/1.1\r\nhost: x\r\nconnection: ${connection}\r\ncontent-type: ${multipart['content-type']}\r\ncontent-length: ${bytes.length}\r\n\r\n`;

/** Grants the upload of another file. @returns the fields of its form */
async function grant(api: TestApi, name: string, bytesMax: number): Promise<UploadForm['fields']> {
  const key = `${workspaceId}/private/${name}.png`;
  await addFileRow(api, key);
  return (await api.context.storage.grant({ key, contentType: 'image/png', bytesMax })).fields;
}

function body(fields: Readonly<Record<string, string>>, content: Buffer): Buffer {
  return Buffer.concat([fieldParts(fields), part('name="file"; filename="x.png"', content), end]);
}

async function send(
  port: number,
  bytes: Buffer,
  headers: Readonly<Record<string, string>> = multipart,
): Promise<{ status: number; text: string; headers: Headers }> {
  const reply = await fetch(`http://127.0.0.1:${port}${path}`, {
    method: 'POST',
    body: new Uint8Array(bytes),
    headers,
  });
  return { status: reply.status, text: await reply.text(), headers: reply.headers };
}

t.test('201: stores the file, with CORS, and its row has the size', async (t) => {
  const { api, port, form, left } = await listening(t);
  const answer = await send(port, body(form.fields, Buffer.alloc(70_000, 'x')));
  t.equal(answer.status, 201, answer.text);
  t.equal(answer.headers.get('access-control-allow-origin'), '*');
  t.match(answer.headers.get('etag'), /^"[^"]+"$/);
  t.match(answer.text, `<Key>${form.key}</Key>`);
  t.strictSame(left(), { incoming: 0, objects: 1 });
  const row = await api.context.db.selectFrom('files').selectAll().executeTakeFirstOrThrow();
  t.match(row, { size: 70_000, storedAt: String });
});

t.test('201: the smallest pieces that a network can make', async (t) => {
  const { port, form, left } = await listening(t);
  const bytes = body(form.fields, Buffer.from('content'));
  const socket = connect({ port, host: '127.0.0.1', noDelay: true });
  socket.write(headOf(bytes, 'close'));
  for (const byte of bytes) {
    socket.write(Buffer.from([byte]));
    await new Promise(setImmediate);
  }
  const answer = Buffer.concat(await socket.toArray()).toString();
  t.match(answer, /^HTTP\/1\.1 201 /);
  t.strictSame(left(), { incoming: 0, objects: 1 });
});

t.test('bytes behind the file do not count', async (t) => {
  const { port, form } = await listening(t);
  const late = Buffer.concat([
    fieldParts(form.fields),
    part('name="file"; filename="x.png"', 'right'),
    part('name="key"', 'ws1/private/other.png'),
    end,
  ]);
  t.equal((await send(port, late)).status, 201);
});

const tooBig = Buffer.alloc(100_001);
t.test('400 EntityTooLarge: by the announced length, and while it streams', async (t) => {
  const { port, form, left } = await listening(t);
  for (const size of [100_001, 2_000_000, 30_000_000]) {
    const answer = await send(port, body(form.fields, Buffer.alloc(size)));
    t.equal(answer.status, 400, `${size} bytes, announced`);
    t.match(answer.text, /<Code>EntityTooLarge<\/Code>/);
  }
  const chunked = request({ port, host: '127.0.0.1', method: 'POST', path, headers: multipart });
  const answered = new Promise<{ status: number | undefined; text: string }>((resolve, reject) => {
    chunked.on('error', reject);
    chunked.on('response', async (response) => {
      resolve({ status: response.statusCode, text: Buffer.concat(await response.toArray()).toString() });
    });
  });
  chunked.write(fieldParts(form.fields));
  chunked.write(part('name="file"; filename="x.png"', tooBig));
  const answer = await answered;
  t.equal(answer.status, 400, 'refused before the end of the body');
  t.match(answer.text, /EntityTooLarge/);
  chunked.destroy();
  t.strictSame(left(), { incoming: 0, objects: 0 });
});

t.test('400, 403, 412: malformed forms', async (t) => {
  const { port, form, left } = await listening(t);
  const { fields } = form;
  const file = part('name="file"; filename="x.png"', 'x');
  const long = 'x'.repeat(9_000);
  for (const [title, bytes, status, code, headers] of [
    ['no file', Buffer.concat([fieldParts(fields), end]), 400, 'InvalidArgument'],
    ['nothing', end, 400, 'InvalidArgument'],
    [
      'a file under another name',
      Buffer.concat([fieldParts(fields), part('name="upload"; filename="x"', 'x'), end]),
      400,
      'InvalidArgument',
    ],
    [
      'a field twice',
      Buffer.concat([part('name="key"', 'a'), fieldParts(fields), file, end]),
      400,
      'InvalidArgument',
    ],
    [
      'a field without an end',
      Buffer.concat([part('name="Policy"', long), file, end]),
      400,
      'MalformedPOSTRequest',
    ],
    [
      'too many fields',
      Buffer.concat([...Array.from({ length: 30 }, (_, n) => part(`name="f${n}"`, 'x')), file, end]),
      400,
      'MalformedPOSTRequest',
    ],
    ['the file first', Buffer.concat([file, fieldParts(fields), end]), 403, 'AccessDenied'],
    ['no fields', Buffer.concat([file, end]), 403, 'AccessDenied'],
    ['the end is missing', Buffer.concat([fieldParts(fields), file]), 400, 'IncompleteBody'],
    ['no part at all', Buffer.from('hello'), 400, 'MalformedPOSTRequest'],
    ['JSON', Buffer.from('{}'), 412, 'PreconditionFailed', { 'content-type': 'application/json' }],
    [
      'no boundary',
      body(fields, Buffer.from('x')),
      412,
      'PreconditionFailed',
      { 'content-type': 'multipart/form-data' },
    ],
    [
      'an empty boundary',
      body(fields, Buffer.from('x')),
      400,
      'MalformedPOSTRequest',
      { 'content-type': 'multipart/form-data; charset=x' },
    ],
  ] as const) {
    const answer = await send(port, bytes, headers ?? multipart);
    t.match([answer.status, answer.text], [status, new RegExp(`<Code>${code}</Code>`)], title);
    t.equal(answer.headers.get('access-control-allow-origin'), '*');
  }
  t.strictSame(left(), { incoming: 0, objects: 0 });
});

t.test('403: a grant for another purpose, with another secret, or cut off', async (t) => {
  const { api, port, form } = await listening(t);
  const { Policy = '', Signature = '' } = form.fields;
  for (const Forged of [
    api.context.signer.sign(Policy),
    Signature.slice(0, -2),
    `${Signature}00`,
    '',
    'zz',
  ]) {
    const answer = await send(port, body({ ...form.fields, Signature: Forged }, Buffer.from('x')));
    t.match([answer.status, answer.text], [403, /AccessDenied/], Forged.slice(0, 8));
  }
});

t.test('a client that leaves in the middle leaves no file, and the service goes on', async (t) => {
  const { api, port, form, left } = await listening(t);
  const accepted: Socket[] = [];
  api.app.server.on('connection', (socket) => accepted.push(socket));
  const bytes = body(form.fields, Buffer.alloc(90_000));
  const head = headOf(bytes);
  for (const [i, cut] of [10, 400, fieldParts(form.fields).length + 200, bytes.length - 10].entries()) {
    const socket = connect({ port, host: '127.0.0.1' });
    socket.write(head);
    socket.write(bytes.subarray(0, cut));
    await until(() => accepted[i]?.bytesRead === head.length + cut, 'the server has read it');
    socket.destroy();
  }
  // The server notices the end of each socket, and then deletes the file.
  await until(() => left().incoming === 0, 'no upload is under way');
  t.strictSame(left(), { incoming: 0, objects: 0 });
  // The place of an upload is free after its file is deleted.
  let status = 503;
  await until(async () => {
    ({ status } = await send(port, bytes));
    return status !== 503;
  }, 'the places of the uploads are free');
  t.equal(status, 201);
});

/** Sends everything but the end of a file. @returns a function that disconnects */
function begin(port: number, fields: Readonly<Record<string, string>>): () => void {
  const bytes = body(fields, Buffer.alloc(1000));
  const socket = connect({ port, host: '127.0.0.1' });
  socket.on('error', () => undefined);
  socket.write(headOf(bytes));
  socket.write(bytes.subarray(0, -100));
  return () => void socket.destroy();
}

t.test('503: too many uploads with one grant, or 64 in total; ending one frees its place', async (t) => {
  const { api, port, form, left } = await listening(t);
  const untilIncoming = (count: number): Promise<void> =>
    until(() => left().incoming === count, `${count} uploads under way`);
  const bytes = body(form.fields, Buffer.from('x'));
  const leave = [begin(port, form.fields), begin(port, form.fields)];
  await untilIncoming(2);
  const third = await send(port, bytes);
  t.match([third.status, third.text, third.headers.get('retry-after')], [503, /SlowDown/, '5']);

  const another = body(await grant(api, 'another', 5_000), Buffer.from('x'));
  t.equal((await send(port, another)).status, 201, 'another grant is not affected');
  for (let n = 0; n < 31; n += 1) {
    const fields = await grant(api, String(n), 5_000);
    leave.push(begin(port, fields), begin(port, fields));
  }
  await untilIncoming(64);
  const last = body(await grant(api, 'last', 5_000), Buffer.from('x'));
  t.equal((await send(port, last)).status, 503);
  for (const go of leave) go();
  await untilIncoming(0);
  t.equal((await send(port, last)).status, 201);
});

/** Sends part of a file. @returns a function that sends the rest, and the reply once the connection is closed */
function trickle(port: number, fields: Readonly<Record<string, string>>, first: number) {
  const bytes = body(fields, Buffer.alloc(600_000));
  const socket = connect({ port, host: '127.0.0.1' });
  const answer: Buffer[] = [];
  const closed = new Promise((resolve) => socket.on('close', resolve));
  socket.on('error', () => undefined);
  socket.on('data', (chunk: Buffer) => answer.push(chunk));
  socket.write(headOf(bytes, 'close'));
  socket.write(bytes.subarray(0, first));
  return {
    async finish(): Promise<string> {
      if (socket.writable) socket.write(bytes.subarray(first));
      await closed;
      return Buffer.concat(answer).toString();
    },
    leave: () => void socket.destroy(),
  };
}

t.test('201: if all places are taken, the slowest sender is cut', async (t) => {
  const { api, incomingBytes, left, port } = await listening(t);
  const honest = trickle(port, await grant(api, 'honest', 1_000_000), 400_000);
  await until(() => incomingBytes() > 350_000);
  const slowest = trickle(port, await grant(api, 'slowest', 1_000_000), 3_000);
  await until(() => left().incoming === 2);
  const slow = [];
  for (let n = 0; n < 62; n += 1) slow.push(trickle(port, await grant(api, `slow${n}`, 1_000_000), 30_000));
  await until(() => left().incoming === 64 && incomingBytes() > 350_000 + 62 * 20_000);
  const next = async (name: string) => send(port, body(await grant(api, name, 1_000_000), Buffer.from('x')));

  api.advance(4_999);
  t.equal((await next('early')).status, 503, 'no upload is slow yet');
  api.advance(5_001);
  t.equal((await next('first')).status, 201);
  t.match(await slowest.finish(), /^HTTP\/1\.1 503 .*<Code>SlowDown</s, 'the cut client is told why');
  await until(() => left().incoming === 63);
  t.equal((await next('second')).status, 201, 'the place is free');
  t.equal(left().incoming, 63, 'no other upload was cut');
  t.match(await honest.finish(), /^HTTP\/1\.1 201 /);
  for (const { leave } of slow) leave();
  await until(() => left().incoming === 0);
});

t.test('a silent sender loses its connection and its place', async (t) => {
  const { port, form, left } = await listening(t);
  const begun = Date.now();
  begin(port, form.fields);
  await until(() => left().incoming === 1, 'the upload is under way');
  await until(() => left().incoming === 0, 'the upload is given up');
  const took = Date.now() - begun;
  t.ok(took > 14_000, `cut only after its time: ${took} ms`);
});

t.test('503: a full disk: an error, no partial file, and recovery when there is room', async (t) => {
  const folder = temporaryFolder(t);
  if (spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=1m', 'tmpfs', folder]).status !== 0) {
    t.comment('skipped: a file system of one MiB can be made by root alone');
    return;
  }
  t.teardown(() => spawnSync('umount', ['--lazy', folder]));
  const { port, form, left } = await listening(t, 3_000_000, { STORAGE_PATH: folder });
  const full = await send(port, body(form.fields, Buffer.alloc(2_000_000)));
  t.match([full.status, full.text], [503, /<Code>ServiceUnavailable<.*try again later/]);
  t.strictSame(left(), { incoming: 0, objects: 0 });
  t.equal((await send(port, body(form.fields, Buffer.alloc(500_000)))).status, 201);
});

t.test('404: no upload target if files are in S3', async (t) => {
  const inS3 = await startApi(t, {
    env: {
      S3_BUCKET_NAME: 'uploads',
      S3_ENDPOINT_URL: 'http://127.0.0.1:9',
      S3_ACCESS_KEY: 'a',
      S3_SECRET_KEY: 'b',
    },
  });
  t.equal((await inS3.client('POST', path)).status, 404);
});
