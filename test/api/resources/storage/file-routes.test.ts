/** Stored files: rights to read and delete them, headers, and invalid paths. */
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { startSession } from '#api/auth/session.ts';
import { toTimestamp } from '#api/values/timestamps.ts';
import { apiKey, startApi, startOfTime, type TestApi, workspaceId } from '#test/support/api-app.ts';
import { casesUnder } from '#test/support/arrow-cases.ts';
import { addFileRow, receiveFile } from '#test/support/files.ts';
import { sendRaw } from '#test/support/raw.ts';

const content = Buffer.from('0123456789');

interface Shop {
  readonly api: TestApi;
  /** Stores a file without HTTP. @returns its path */
  put(access: 'public' | 'private', name: string, bytes?: Buffer): Promise<string>;
  /** @returns the cookie of a person with this role */
  signIn(role?: 'owner' | 'member'): Promise<string>;
}

async function shop(t: Test, env: Record<string, string> = {}): Promise<Shop> {
  const api = await startApi(t, { env });
  return {
    api,
    async put(access, name, bytes = content) {
      const key = `${workspaceId}/${access}/${name}`;
      await api.context.db.deleteFrom('files').where('key', '=', key).execute();
      await addFileRow(api, key);
      await receiveFile(api, key, bytes);
      return `/storage/${workspaceId}/${access}/${name.split('/').map(encodeURIComponent).join('/')}`;
    },
    async signIn(role = 'owner') {
      const { db, clock, random } = api.context;
      const { id: userId } = await db.selectFrom('users').select('id').executeTakeFirstOrThrow();
      await db.updateTable('memberships').set({ role }).where('userId', '=', userId).execute();
      return `next-auth.session-token=${await startSession(db, userId, { clock, random, maxAgeSeconds: 60 })}`;
    },
  };
}

t.test('GET public: for everybody, cached for a year, with its type, and in a sandbox', async (t) => {
  const { api, put } = await shop(t);
  const reply = await api.client(
    'GET',
    await put('public', 'ä photo--fid--0b9c7f3e-5f0a-4a4e-9d3e-000000000000.png'),
  );
  t.equal(reply.status, 200);
  t.equal(reply.text, '0123456789');
  t.match(reply.headers, {
    'content-type': 'image/png',
    'content-length': '10',
    'cache-control': 'public, max-age=31536000, immutable',
    'x-content-type-options': 'nosniff',
    'accept-ranges': 'bytes',
    'content-disposition': `inline; filename="_ photo.png"; filename*=UTF-8''%C3%A4%20photo.png`,
    'content-security-policy': /default-src 'none';.*sandbox$/,
    etag: /^"[^"]+"$/,
  });
});

t.test('files that are not picture, video or sound are downloaded, not shown', async (t) => {
  const { api, put } = await shop(t);
  for (const [name, type, disposition] of [
    ['a.pdf', 'application/pdf', 'attachment'],
    ['a.txt', 'text/plain', 'attachment'],
    ['a.docx', 'application/vnd.openxmlformats-officedocument.wordprocessingml.document', 'attachment'],
    ['a.MP4', 'video/mp4', 'inline'],
    // These types cannot be uploaded. If such files exist all the same, they are served as plain bytes.
    ['a.html', 'application/octet-stream', 'attachment'],
    ['a.svg', 'application/octet-stream', 'attachment'],
  ] as const) {
    const { headers } = await api.client('GET', await put('public', name));
    t.equal(headers['content-type'], type, name);
    t.ok(String(headers['content-disposition']).startsWith(`${disposition};`), name);
  }
});

t.test('answers ranges, HEAD and conditional requests', async (t) => {
  const { api, put } = await shop(t);
  const path = await put('public', 'a.png');
  const part = await api.client('GET', path, undefined, { range: 'bytes=2-4' });
  t.match([part.status, part.text], [206, '234']);
  t.match(part.headers, { 'content-range': 'bytes 2-4/10', 'content-length': '3' });
  const beyond = await api.client('GET', path, undefined, { range: 'bytes=10-' });
  t.match([beyond.status, beyond.text, beyond.headers['content-range']], [416, '', 'bytes */10']);
  const head = await api.client('HEAD', path, undefined, { range: 'bytes=2-4' });
  t.match([head.status, head.text], [200, '']);
  t.match(head.headers, { 'content-length': '10', 'content-type': 'image/png' });
  const again = await api.client('GET', path, undefined, { 'if-none-match': String(head.headers.etag) });
  t.match([again.status, again.text], [304, '']);
  t.match(again.headers, { etag: head.headers.etag, 'cache-control': /immutable/ });
  const resumed = { range: 'bytes=5-', 'if-range': String(head.headers.etag) };
  t.equal((await api.client('GET', path, undefined, resumed)).text, '56789');
  t.equal((await api.client('GET', path, undefined, { ...resumed, 'if-range': '"old"' })).status, 200);
});

t.test('404: a file whose row is missing or deleted is not served', async (t) => {
  const { api, put } = await shop(t);
  const { db } = api.context;
  const path = await put('public', 'a.png');
  t.equal((await api.client('GET', path)).status, 200);
  await db
    .updateTable('files')
    .set({ removedAt: toTimestamp(startOfTime) })
    .execute();
  t.equal((await api.client('GET', path)).status, 404, 'marked as removed, but the object still exists');
  await db.deleteFrom('files').execute();
  t.equal((await api.client('GET', path)).status, 404, 'a copy restored the object after the deletion');
});

t.test('serves an empty file', async (t) => {
  const { api, put } = await shop(t);
  const path = await put('public', 'a.txt', Buffer.alloc(0));
  const reply = await api.client('GET', path);
  t.match([reply.status, reply.text, reply.headers['content-length']], [200, '', '0']);
  t.equal((await api.client('HEAD', path)).headers['content-length'], '0');
  t.equal((await api.client('GET', path, undefined, { range: 'bytes=0-' })).status, 416);
});

t.test('GET private: needs a key or session that may read, and is not cached', async (t) => {
  const { api, put, signIn } = await shop(t);
  await api.addWorkspace('ws2');
  const path = await put('private', 'surveys/s1/elements/q1/a.png');
  t.match((await api.client('GET', path)).json, { code: 'not_authenticated' });
  t.equal((await api.client('GET', path, undefined, { 'x-api-key': 'wrong' })).status, 401);
  const stranger = await api.addKey({ ws2: 'manage' });
  t.match((await api.client('GET', path, undefined, { 'x-api-key': stranger })).json, {
    code: 'unauthorized',
  });
  const reader = await api.addKey({ [workspaceId]: 'read' });
  const member = { cookie: await signIn('member') };
  t.match((await api.client('GET', path, undefined, member)).json, { code: 'unauthorized' });
  for (const headers of [{ 'x-api-key': reader }, { 'x-api-key': apiKey }, { cookie: await signIn() }]) {
    const reply = await api.client('GET', path, undefined, headers);
    t.match([reply.status, reply.text], [200, '0123456789']);
    t.equal(reply.headers['cache-control'], 'no-store, no-cache, must-revalidate');
  }
  t.equal((await api.client('HEAD', path)).status, 401);
});

t.test('400: path traversal in every spelling, with every method', async (t) => {
  const { api, put } = await shop(t);
  await put('private', 'secret.png');
  const port = await api.listen();
  const page = join(import.meta.dirname, 'file-names.md');
  for (const [name] of casesUnder(page, 'Paths that are refused with every method'))
    for (const method of ['GET', 'HEAD', 'DELETE']) {
      // The test writes the request itself, because a client library would resolve the dots.
      const sent = `${method} /storage/${workspaceId}/public/${name} HTTP/1.1\r\nhost: x\r\nx-api-key: ${apiKey}\r\nconnection: close\r\n\r\n`;
      t.match(await sendRaw(port, sent).ended(), /^HTTP\/1\.1 400 /, `${method} ${name}`);
    }
  t.equal(
    (await api.manage('GET', `/storage/${workspaceId}/private/secret.png`)).status,
    200,
    'the file still exists',
  );
});

t.test('DELETE: a key with manage or a session with write; also for a missing file', async (t) => {
  const { api, put, signIn } = await shop(t);
  const path = await put('public', 'a.png');
  t.match((await api.client('DELETE', path)).json, { code: 'not_authenticated' });
  const writer = await api.addKey({ [workspaceId]: 'write' });
  t.match((await api.client('DELETE', path, undefined, { 'x-api-key': writer })).json, {
    code: 'unauthorized',
  });
  const member = await signIn('member');
  t.match((await api.client('DELETE', path, undefined, { cookie: member })).json, { code: 'unauthorized' });
  t.equal((await api.client('GET', path)).status, 200);
  for (const headers of [{ 'x-api-key': apiKey }, { 'x-api-key': apiKey }, { cookie: await signIn() }]) {
    const reply = await api.client('DELETE', path, undefined, headers);
    t.equal(reply.status, 200, reply.text);
    t.strictSame(reply.json, { data: 'File deleted successfully' });
    t.equal((await api.client('GET', path)).status, 404);
    await put('public', 'a.png');
  }
});

t.test('DELETE with a session: not from a page of another origin', async (t) => {
  const { api, put, signIn } = await shop(t);
  const path = await put('public', 'a.png');
  const headers = { cookie: await signIn(), origin: 'https://evil.example' };
  t.equal((await api.client('DELETE', path, undefined, headers)).status, 403);
  t.equal((await api.client('GET', path)).status, 200);
});

t.test('500: a file store that does not answer; only the log has the reason', async (t) => {
  const lines: string[] = [];
  const api = await startApi(t, {
    env: {
      S3_BUCKET_NAME: 'uploads',
      S3_ENDPOINT_URL: 'http://127.0.0.1:9',
      S3_ACCESS_KEY: 'a',
      S3_SECRET_KEY: 'b',
    },
    log: (await import('pino')).pino({}, { write: (line: string) => void lines.push(line) }),
  });
  await addFileRow(api, `${workspaceId}/public/a.png`);
  const reply = await api.manage('GET', `/storage/${workspaceId}/public/a.png`);
  t.equal(reply.status, 500);
  t.match(reply.json, {
    code: 'internal_server_error',
    message: /^File storage is not configured correctly\. /,
    details: { storage_error_code: 's3_client_error' },
  });
  t.notMatch(reply.text, /127\.0\.0\.1/);
  t.match(lines.join(''), /S3_BUCKET_NAME, S3_ENDPOINT_URL, S3_REGION: give/);
});
