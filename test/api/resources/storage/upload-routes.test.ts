/** Uploads on real sockets: invalid forms, clients that leave, and full disks, which leave nothing behind. */
import { spawnSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { apiKey, startApi, workspaceId } from '#test/support/api-app.ts';
import { addFileRow } from '#test/support/files.ts';
import { sendRaw } from '#test/support/raw.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';
import { until } from '#test/support/until.ts';

const path = `/api/v1/client/${workspaceId}/storage/upload`;
const boundary = 'the-boundary';
const multipart = { 'content-type': `multipart/form-data; boundary=${boundary}` };

async function listening(t: Test, env: Readonly<Record<string, string>> = {}) {
  const api = await startApi(t, { env });
  const port = await api.listen();
  const key = `${workspaceId}/private/a--fid--x.png`;
  await addFileRow(api, key);
  const bytesMax = 3_000_000;
  const { fields } = await api.context.storage.grant({ key, contentType: 'image/png', bytesMax });
  const { storage } = api.context.config;
  const folder = storage.kind === 'disk' ? storage.path : '';
  return {
    api,
    port,
    fields,
    /** Counts the files in the folder, also those that are being written. */
    files: (): number =>
      readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile()).length,
    async send(bytes: Buffer, headers: Readonly<Record<string, string>> = multipart) {
      const body = new Uint8Array(bytes);
      const reply = await fetch(`http://127.0.0.1:${port}${path}`, { method: 'POST', body, headers });
      return { status: reply.status, text: await reply.text(), headers: reply.headers };
    },
  };
}

function part(disposition: string, content: string | Buffer): Buffer {
  return Buffer.concat([
    Buffer.from(`--${boundary}\r\nContent-Disposition: form-data; ${disposition}\r\n\r\n`),
    Buffer.from(content),
    Buffer.from('\r\n'),
  ]);
}

const end = Buffer.from(`--${boundary}--\r\n`);
const fieldParts = (fields: Readonly<Record<string, string>>): Buffer =>
  Buffer.concat(Object.entries(fields).map(([name, value]) => part(`name="${name}"`, value)));
const body = (fields: Readonly<Record<string, string>>, content: Buffer): Buffer =>
  Buffer.concat([fieldParts(fields), part('name="file"; filename="x.png"', content), end]);

t.test('400, 403: malformed forms store nothing; 201: a whole one, and its row has the size', async (t) => {
  const { api, fields, files, send } = await listening(t);
  const file = part('name="file"; filename="x.png"', 'x');
  const whole = body(fields, Buffer.from('x'));
  for (const [title, bytes, status, headers] of [
    ['no file', Buffer.concat([fieldParts(fields), end]), 400],
    ['nothing', end, 400],
    ['a long field', Buffer.concat([part('name="Policy"', 'x'.repeat(9_000)), file, end]), 403],
    [
      'too many fields',
      Buffer.concat([...Array.from({ length: 30 }, (_, n) => part(`name="f${n}"`, 'x')), file, end]),
      400,
    ],
    ['no fields', Buffer.concat([file, end]), 403],
    ['the end is missing', Buffer.concat([fieldParts(fields), file]), 400],
    ['no part at all', Buffer.from('hello'), 400],
    ['JSON', Buffer.from('{}'), 400, { 'content-type': 'application/json' }],
    ['no boundary', whole, 400, { 'content-type': 'multipart/form-data' }],
  ] as const) {
    const answer = await send(bytes, headers ?? multipart);
    t.equal(answer.status, status, `${title}: ${answer.text}`);
    t.equal(answer.headers.get('access-control-allow-origin'), '*');
  }
  t.equal(files(), 0);
  const answer = await send(body(fields, Buffer.alloc(70_000, 'x')));
  t.equal(answer.status, 201, answer.text);
  t.equal(answer.headers.get('access-control-allow-origin'), '*');
  t.equal(files(), 1);
  t.match(await api.context.db.selectFrom('files').selectAll().execute(), [{ size: 70_000 }]);
});

t.test('429: more than sixteen uploads, or eight of a client; who leaves gives its place back', async (t) => {
  const env = { RATE_LIMITING_DISABLED: '1' };
  const { api, fields, files, port, send } = await listening(t, env);
  const bytes = body(fields, Buffer.alloc(90_000));
  const head = `POST ${path} HTTP/1.1\r\nhost: x\r\ncontent-type: ${multipart['content-type']}\r\ncontent-length: ${bytes.length}\r\n\r\n`;
  let begun = 0;
  api.app.server.on('request', () => {
    begun += 1;
  });
  const sockets: Socket[] = [];
  for (const localAddress of ['127.0.0.2', '127.0.0.3']) {
    for (let i = 0; i < 8; i++) {
      const socket = connect({ port, host: '127.0.0.1', localAddress });
      socket.on('error', () => undefined);
      socket.write(head);
      socket.write(bytes.subarray(0, i * 5_000));
      sockets.push(socket);
    }
    await until(() => begun === sockets.length, 'its uploads have begun');
    const ninth = sendRaw(port, head, localAddress);
    t.match(await ninth.until(/\r\n\r\n/), /^HTTP\/1\.1 429 [\s\S]*retry-after: 5\r\n/);
    ninth.socket.destroy();
    begun -= 1;
  }
  const refused = await send(bytes);
  t.match([refused.status, refused.headers.get('retry-after')], [429, '5']);
  for (const socket of sockets) socket.destroy();
  let status = 429;
  await until(async () => {
    ({ status } = await send(bytes));
    return status !== 429;
  }, 'the places of the uploads are free');
  t.equal(status, 201);
  t.equal(files(), 1);
});

t.test('500: a full disk: an error, no partial file, and recovery when there is room', async (t) => {
  const folder = temporaryFolder(t);
  if (spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=1m', 'tmpfs', folder]).status !== 0) {
    t.comment('skipped: a file system of one MiB can be made by root alone');
    return;
  }
  t.teardown(() => spawnSync('umount', ['--lazy', folder]));
  const { fields, files, send } = await listening(t, { STORAGE_PATH: join(folder, 'uploads') });
  t.equal((await send(body(fields, Buffer.alloc(2_000_000)))).status, 500);
  t.equal(files(), 0);
  t.equal((await send(body(fields, Buffer.alloc(500_000)))).status, 201);
});

t.test('404: no upload target if files are in S3', async (t) => {
  const inS3 = await startApi(t, {
    env: { S3_BUCKET_NAME: 'uploads', S3_ENDPOINT_URL: 'http://127.0.0.1:9' },
  });
  t.equal((await inS3.client('POST', path)).status, 404);
});

t.test(
  'a grant is for 5 MiB of a public file, 10 MiB of an answer, and less where its question says so',
  async (t) => {
    const api = await startApi(t);
    const question = (id: string, more = {}) => ({
      id,
      type: 'fileUpload',
      headline: 'A file?',
      allowMultipleFiles: false,
      ...more,
    });
    const longest = 'e'.repeat(255);
    const { json } = await api.client(
      'POST',
      '/api/v1/management/surveys',
      {
        ...{ workspaceId, name: 'Files', type: 'link', status: 'inProgress' },
        questions: [question('any'), question(longest, { maxSizeInMB: 2 })],
      },
      { 'x-api-key': apiKey },
    );
    const surveyId = json.data.id;
    const bytesOf = async (route: string, more: object): Promise<unknown> => {
      const request = { fileName: 'a.pdf', fileType: 'application/pdf', ...more };
      const { json, text } = await api.client('POST', route, request, { 'x-api-key': apiKey });
      const policy = json.data?.presignedFields.Policy;
      return policy === undefined ? text : JSON.parse(Buffer.from(policy, 'base64').toString()).bytesMax;
    };
    const MIB = 1_048_576;
    t.equal(await bytesOf('/api/v1/management/storage', { environmentId: workspaceId }), 5 * MIB);
    const client = `/api/v1/client/${workspaceId}/storage`;
    t.equal(await bytesOf(client, { surveyId, elementId: 'any' }), 10 * MIB);
    t.equal(await bytesOf(client, { surveyId, elementId: longest }), 2 * MIB);
    t.equal(await bytesOf(client, { surveyId }), 10 * MIB, 'any of its questions');
  },
);
