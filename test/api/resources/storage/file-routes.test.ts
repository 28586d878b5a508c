/** Stored files: rights of sessions, deleted rows, and invalid paths. test/conversations/files.md has the rest. */
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { startSession } from '#api/auth/session.ts';
import { toTimestamp } from '#api/values/timestamps.ts';
import { apiKey, startApi, startOfTime, type TestApi, workspaceId } from '#test/support/api-app.ts';
import { casesUnder } from '#test/support/arrow-cases.ts';
import { addFileRow, receiveFile } from '#test/support/files.ts';
import { sendRaw } from '#test/support/raw.ts';

const content = '0123456789';

interface Shop {
  readonly api: TestApi;
  /** Stores a file without HTTP. @returns its path */
  put(access: 'public' | 'private', name: string): Promise<string>;
  /** @returns the cookie of a person with this role */
  signIn(role?: 'owner' | 'member'): Promise<string>;
}

async function shop(t: Test): Promise<Shop> {
  const api = await startApi(t);
  return {
    api,
    async put(access, name) {
      const key = `${workspaceId}/${access}/${name}`;
      await api.context.db.deleteFrom('files').where('key', '=', key).execute();
      await addFileRow(api, key);
      await receiveFile(api, key, content);
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

t.test('a session reads and deletes by the role, and not for a page of another origin', async (t) => {
  const { api, put, signIn } = await shop(t);
  const path = await put('private', 'surveys/s1/elements/q1/a.png');
  const member = { cookie: await signIn('member') };
  for (const method of ['GET', 'DELETE'] as const)
    t.match((await api.client(method, path, undefined, member)).json, { code: 'unauthorized' });
  const owner = { cookie: await signIn() };
  const evil = { ...owner, origin: 'https://evil.example' };
  t.equal((await api.client('DELETE', path, undefined, evil)).status, 403);
  t.equal((await api.client('GET', path, undefined, owner)).text, content);
  t.equal((await api.client('DELETE', path, undefined, owner)).status, 200);
  t.equal((await api.client('GET', path, undefined, owner)).status, 404);
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
