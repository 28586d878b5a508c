/**
 * Two API processes on one database and one folder of files, as behind a load balancer: what one of them makes, the other
 * honours.
 */
import t from 'tap';
import { startPair } from '#test/support/api-process.ts';
import { openTestDatabase, sharedDatabase } from '#test/support/database.ts';
import { type Http, openHttp } from '#test/support/http-send.ts';
import { until } from '#test/support/until.ts';
import { cookiesOf } from '#test/support/world.ts';

const url = await sharedDatabase(t);
const db = openTestDatabase(url);
t.teardown(() => db.destroy());
const key = { 'x-api-key': 'fbk_two' };

// Both start at once, on a database without a first start.
const { bases, processes } = await startPair(t, url, key['x-api-key']);
const [one, other] = [openHttp(bases[0]), openHttp(bases[1])];
t.teardown(() => Promise.all([one.close(), other.close()]));

async function manage(http: Http, method: string, path: string, body?: object) {
  const reply = await http.send({
    method,
    url: `/api/v1/management/${path}`,
    headers: key,
    body: body === undefined ? undefined : JSON.stringify(body),
  });
  if (reply.status !== 200) throw new Error(`${method} ${path}: ${reply.status} ${reply.text}`);
  return JSON.parse(reply.text).data;
}

/** Gets a form with its CSRF token from one process, and sends it to the other. */
async function submit(path: string, fields: Record<string, string>, cookie = '') {
  const asked = await one.send({ method: 'GET', url: '/api/auth/csrf' });
  const { csrfToken } = JSON.parse(asked.text);
  return other.send({
    method: 'POST',
    url: path,
    headers: { cookie: [cookiesOf(asked), cookie].filter((text) => text !== '').join('; ') },
    body: new URLSearchParams({ csrfToken, json: 'true', ...fields }).toString(),
  });
}

async function logIn(password: string): Promise<string> {
  const reply = await submit('/api/auth/callback/credentials', { email: 'owner@example.com', password });
  t.notMatch(reply.text, /error=/);
  return cookiesOf(reply);
}

t.test('sessions and CSRF tokens; signing out at one ends the session at the other', async (t) => {
  const cookie = await logIn('Password1');
  const headers = { cookie };
  for (const http of [one, other]) {
    const session = await http.send({ method: 'GET', url: '/api/auth/session', headers });
    t.match(JSON.parse(session.text), { user: { email: 'owner@example.com' } });
  }
  t.equal((await submit('/api/auth/signout', {}, cookie)).status, 200);
  t.equal((await one.send({ method: 'GET', url: '/api/auth/session', headers })).text, '{}');
});

t.test('a grant of one, an upload to the other, read at the first', async (t) => {
  const granted = await manage(one, 'POST', 'storage', {
    workspaceId: 'ws1',
    fileName: 'note.txt',
    fileType: 'text/plain',
  });
  const form = new FormData();
  for (const [name, value] of Object.entries<string>(granted.presignedFields)) form.set(name, value);
  form.set('file', new Blob(['hello'], { type: 'text/plain' }), 'note.txt');
  const encoded = new Response(form);
  const uploaded = await other.send({
    method: 'POST',
    url: new URL(granted.signedUrl).pathname,
    headers: { 'content-type': encoded.headers.get('content-type') ?? '' },
    body: Buffer.from(await encoded.arrayBuffer()),
  });
  t.equal(uploaded.status, 201, uploaded.text);
  const read = await one.send({ method: 'GET', url: new URL(granted.fileUrl, 'http://x').pathname });
  t.equal(read.status, 200);
  t.equal(read.text, 'hello');
  const headers = { 'if-none-match': String(read.headers.etag) };
  const again = await other.send({
    method: 'GET',
    url: new URL(granted.fileUrl, 'http://x').pathname,
    headers,
  });
  t.equal(again.status, 304);
});

t.test('both sign with one secret, and the first start is reported once', async (t) => {
  t.equal((await db.selectFrom('secrets').select('name').execute()).length, 1);
  const notices = () => processes.filter((one) => one.output().includes('First start')).length;
  await until(() => notices() > 0);
  t.equal(notices(), 1);
});
