/**
 * Two API processes on one database and one folder of files, as behind a load balancer: what one of them makes, the other
 * honours, and what one of them changes, the other answers within a second.
 */
import t from 'tap';
import { startPair } from '#test/support/api-process.ts';
import { openTestDatabase, sharedDatabase } from '#test/support/database.ts';
import { type Http, openHttp } from '#test/support/http-send.ts';
import { until } from '#test/support/until.ts';
import { cookiesOf, openSurvey } from '#test/support/world.ts';

const url = await sharedDatabase(t);
const db = openTestDatabase(url);
t.teardown(() => db.destroy());
const key = { 'x-api-key': 'fbk_two' };

// Both start at once, on a database without a first start.
const { bases, processes } = await startPair(t, url, key['x-api-key']);
const [one, other] = [openHttp(bases[0]), openHttp(bases[1])];
t.teardown(() => Promise.all([one.close(), other.close()]));
const environment = { method: 'GET', url: '/api/v1/client/ws1/environment' };

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

/** Waits for the mail. The reply to a forgotten password does not wait for it, to hide whether the address is known. */
async function tokenInMail(kind: string): Promise<string> {
  let token: string | undefined;
  await until(async () => {
    const mail = await db.selectFrom('mailOutbox').select('body').where('kind', '=', kind).executeTakeFirst();
    token = mail && /[?&]token=([\w-]+)/.exec(mail.body)?.[1];
    return token !== undefined;
  }, `a mail of kind ${kind}`);
  return token ?? '';
}

t.test('the ETag of one process is valid at the other', async (t) => {
  for (;;) {
    const first = await one.send(environment);
    const second = await other.send(environment);
    const again = await one.send(environment);
    // Unless its window ended meanwhile.
    if (first.headers.etag !== again.headers.etag) continue;
    t.equal(second.headers.etag, first.headers.etag);
    t.equal(second.text, first.text);
    const headers = { 'if-none-match': String(first.headers.etag) };
    const statuses = [(await other.send({ ...environment, headers })).status];
    if ((await one.send(environment)).headers.etag !== first.headers.etag) continue;
    t.strictSame(statuses, [304]);
    return;
  }
});

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

t.test('a PIN entered at one gives access to the survey at the other', async (t) => {
  const { id } = await manage(one, 'POST', 'surveys', { ...openSurvey, workspaceId: 'ws1', pin: '1234' });
  const entered = await one.send({
    method: 'POST',
    url: `/api/v1/client/ws1/surveys/${id}/pin`,
    body: '{"pin":"1234"}',
  });
  const { pinAuthToken } = JSON.parse(entered.text).data;
  const reply = await other.send({
    method: 'POST',
    url: '/api/v1/client/ws1/responses',
    body: JSON.stringify({ surveyId: id, finished: false, data: {}, pinAuthToken }),
  });
  t.equal(reply.status, 200, reply.text);
});

t.test('a password reset with forms of the other process', async (t) => {
  const asked = await submit('/auth/forgot-password', { email: 'owner@example.com' });
  t.equal(asked.status, 303, asked.text);
  const token = await tokenInMail('resetPassword');
  const reset = await submit('/auth/forgot-password/reset', { token, password: 'Password2' });
  t.equal(reset.status, 303, reset.text);
  await logIn('Password2');
});

t.test('both processes sign with one secret', async (t) => {
  t.equal((await db.selectFrom('secrets').select('name').execute()).length, 1);
});

t.test('the first start is reported once', async (t) => {
  const notices = () => processes.filter((one) => one.output().includes('First start')).length;
  await until(() => notices() > 0);
  t.equal(notices(), 1);
});
