/** Signup, verification, forgotten passwords. */
import t from 'tap';
import { publicUrl, startApi, type TestApi } from '#test/support/api-app.ts';
import { logInOwner, openBrowser } from '#test/support/login.ts';
import { mailsOf } from '#test/support/mails.ts';

const me = { name: 'Zoë O’Neill'.replace('’', "'"), email: 'zoe@example.com', password: 'Password1' };

const signUp = (api: TestApi, change: object = {}) =>
  api.client('POST', '/api/auth/signup', { ...me, ...change });
const verify = (api: TestApi, token: string, password = me.password) =>
  openBrowser(api).form('/api/auth/callback/token', { token, password });

t.test('signup creates a user and a mail, and an organization only after the verification', async (t) => {
  const api = await startApi(t);
  const { db } = api.context;
  const reply = await signUp(api, { email: ' Zoe@Example.com ' });
  t.equal(reply.status, 200);
  t.equal(reply.headers['set-cookie'], undefined, 'sign-up begins no session');
  const [mail] = await mailsOf(api);
  t.match(mail, { kind: 'verifyEmail', recipient: me.email, token: /^[\w-]{43}$/ });
  t.equal((await db.selectFrom('organizations').select('id').execute()).length, 1);
  const { passwordHash } = await db
    .selectFrom('users')
    .select('passwordHash')
    .where('email', '=', me.email)
    .executeTakeFirstOrThrow();
  t.match(passwordHash, /^\$argon2id\$/);

  t.strictSame((await verify(api, mail?.token ?? '')).json, { url: publicUrl });
  t.equal((await db.selectFrom('organizations').select('id').execute()).length, 2);
  const browser = openBrowser(api);
  await browser.logIn(me.email, me.password);
  const user = (await browser.call('GET', '/api/v1/me')).json;
  t.strictSame(Object.keys(user).sort(), [
    'createdAt',
    'email',
    'emailVerified',
    'id',
    'identityProvider',
    'isActive',
    'lastLoginAt',
    'locale',
    'name',
    'notificationSettings',
    'twoFactorEnabled',
    'updatedAt',
  ]);
  t.match(user, { name: me.name, email: me.email, isActive: true, twoFactorEnabled: false });
});

t.test('signup accepts JSON and forms', async (t) => {
  const api = await startApi(t);
  const form = await api.client('POST', '/api/auth/signup', new URLSearchParams(me).toString());
  t.equal(form.status, 200);
  t.equal((await mailsOf(api)).length, 1);
});

const wrong: readonly (readonly [field: string, value: unknown])[] = [
  ['name', ' '],
  ['name', 'a<b>'],
  ['name', 'x'.repeat(251)],
  ['name', 7],
  ['email', 'nobody'],
  ['email', `${'x'.repeat(250)}@example.com`],
  ['email', 'a@b.example\r\nBcc: c@d.example'],
  ['password', 'short1A'],
  ['password', 'nocapital1'],
  ['password', 'Nodigits'],
  ['password', `Aa1${'x'.repeat(126)}`],
  ['password', undefined],
];
const refusing = await startApi(t);
for (const [field, value] of wrong) {
  t.test(`400: signup with ${field} ${JSON.stringify(value)?.slice(0, 40)}`, async (t) => {
    const reply = await signUp(refusing, { [field]: value });
    t.equal(reply.status, 400);
    t.match(reply.json, { code: 'bad_request', details: { [field]: String } });
    t.strictSame(await mailsOf(refusing), []);
  });
}

t.test('a taken address gets the same reply, and only its owner gets a mail', async (t) => {
  const api = await startApi(t);
  const fresh = await signUp(api);
  const taken = await signUp(api, { email: 'owner@example.com' });
  t.equal(taken.status, fresh.status);
  t.equal(taken.text, fresh.text);
  t.match(
    (await mailsOf(api)).find(({ recipient }) => recipient === 'owner@example.com'),
    {
      kind: 'accountExists',
      token: '',
    },
  );
  await logInOwner(api);
});

t.test('verification: a link works once, for a day, and for nothing else', async (t) => {
  const api = await startApi(t);
  await signUp(api);
  const [mail] = await mailsOf(api);
  const token = mail?.token ?? '';
  const reset = await api.client('POST', '/api/auth/reset-password', { token, password: 'Password2' });
  t.equal(reset.status, 400, 'a verification link does not reset a password');
  t.match((await verify(api, `${token}x`)).json.url, /token%20is%20invalid/);
  const ended = await startApi(t);
  await signUp(ended);
  const [late] = await mailsOf(ended);
  ended.advance(24 * 60 * 60 * 1000);
  t.match((await verify(ended, late?.token ?? '')).json.url, /token%20is%20invalid/, 'expired after a day');
  const rows = await api.context.db.selectFrom('accountTokens').selectAll().execute();
  t.notMatch(JSON.stringify(rows), token, 'only a hash is stored');
});

t.test('resend verification: by address or old link, with the same reply for everybody', async (t) => {
  const api = await startApi(t);
  await signUp(api);
  const [mail] = await mailsOf(api);
  const resend = (body: object) => api.client('POST', '/api/auth/resend-verification', body);
  const texts = new Set<string>();
  for (const body of [
    { email: me.email },
    { token: mail?.token },
    { email: 'owner@example.com' },
    { email: 'nobody@example.com' },
    { token: 'made up' },
  ]) {
    const reply = await resend(body);
    t.equal(reply.status, 200);
    texts.add(reply.text);
  }
  t.equal(texts.size, 1);
  t.strictSame(
    (await mailsOf(api)).map(({ kind, recipient }) => `${kind} ${recipient}`),
    [`verifyEmail ${me.email}`, `verifyEmail ${me.email}`, `verifyEmail ${me.email}`],
  );
  t.equal((await resend({})).status, 400);
});

t.test('a mailbox gets at most five mails of a kind in an hour, whoever requests them', async (t) => {
  const api = await startApi(t);
  const forgot = () => api.client('POST', '/api/auth/forgot-password', { email: 'owner@example.com' });
  for (let i = 0; i < 8; i++) t.equal((await forgot()).status, 200);
  t.equal((await mailsOf(api)).length, 5);
  api.advance(60 * 60 * 1000);
  await forgot();
  t.equal((await mailsOf(api)).length, 6);
});

t.test('forgot password: one reply for everybody; a link works once within an hour', async (t) => {
  const api = await startApi(t);
  const browser = await logInOwner(api);
  const forgot = (email: string) => api.client('POST', '/api/auth/forgot-password', { email });
  const reset = (token: string, password: string) =>
    api.client('POST', '/api/auth/reset-password', { token, password });
  const [unknown, known] = [await forgot('nobody@example.com'), await forgot('Owner@example.com')];
  t.equal(unknown.status, 200);
  t.equal(unknown.text, known.text);
  const mails = await mailsOf(api);
  t.equal(mails.length, 1);
  const token = mails[0]?.token ?? '';

  t.equal((await reset(token, 'weak')).status, 400);
  t.equal((await reset('made up', 'Password2')).status, 400);
  t.equal((await browser.call('GET', '/api/v1/me')).status, 200, 'a request alone changes nothing');
  const both = await Promise.all([reset(token, 'Password2'), reset(token, 'Password3')]);
  t.strictSame(both.map(({ status }) => status).sort(), [200, 400], 'one of two concurrent calls succeeds');
  const chosen = both[0]?.status === 200 ? 'Password2' : 'Password3';
  t.equal((await browser.call('GET', '/api/v1/me')).status, 401);
  t.match((await openBrowser(api).logIn('owner@example.com', 'Password1')).json.url, /error=/);
  t.strictSame((await openBrowser(api).logIn('owner@example.com', chosen)).json, { url: publicUrl });

  await forgot('owner@example.com');
  const late = (await mailsOf(api)).find((mail) => mail.token !== token)?.token ?? '';
  api.advance(60 * 60 * 1000);
  t.equal((await reset(late, 'Password4')).status, 400, 'the link has expired after an hour');
});
