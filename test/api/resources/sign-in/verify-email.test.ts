/** GET and POST /api/auth/verify-email, and POST /api/auth/send-verification-email. */
import t from 'tap';
import { publicUrl, startApi, type TestApi } from '#test/support/api-app.ts';
import { openBrowser } from '#test/support/login.ts';

const url = '/api/auth/verify-email';
const me = { name: 'Zoe', email: 'zoe@example.com', password: 'Password1' };

const tokensOf = async ({ context }: TestApi): Promise<readonly string[]> => {
  const rows = await context.db.selectFrom('mailOutbox').select('body').execute();
  return rows.map(({ body }) => /token=([\w-]+)/.exec(body)?.[1] ?? '');
};
async function signUp(api: TestApi): Promise<string> {
  await api.client('POST', '/api/auth/sign-up/email', me);
  return (await tokensOf(api))[0] ?? '';
}

t.test('GET 302: to the page that asks for the password; opening the link changes nothing', async (t) => {
  const api = await startApi(t);
  const token = await signUp(api);
  const reply = await api.client('GET', `${url}?token=${token}&callbackURL=/account`);
  t.equal(reply.status, 302);
  const location = new URL(String(reply.headers.location), publicUrl);
  t.equal(location.pathname, '/auth/verify');
  t.equal(location.searchParams.get('callbackUrl'), `${publicUrl}/account`);
  const page = await api.client('GET', `${location.pathname}${location.search}`, undefined, {
    accept: 'text/html',
  });
  t.match(page.text, `value="${publicUrl}/account"`);
  const { emailVerified } = await api.context.db
    .selectFrom('users')
    .select('emailVerified')
    .where('email', '=', me.email)
    .executeTakeFirstOrThrow();
  t.equal(emailVerified, null);
});

t.test('GET: an old link gets 401, or leads to the callback with the error', async (t) => {
  const api = await startApi(t);
  t.match(await api.client('GET', `${url}?token=x`), { status: 401, json: { code: 'INVALID_TOKEN' } });
  const reply = await api.client('GET', `${url}?token=x&callbackURL=/account`);
  t.match(reply, { status: 302, headers: { location: `${publicUrl}/account?error=INVALID_TOKEN` } });
  const elsewhere = await api.client('GET', `${url}?token=x&callbackURL=//evil.example`);
  t.match(elsewhere, { status: 403, json: { code: 'INVALID_CALLBACK_URL' } });
  t.match(await api.client('GET', url), {
    status: 400,
    json: { code: 'VALIDATION_ERROR', message: /^\[query.token\]/ },
  });
});

t.test('POST 200: with the password of the sign-up; logs in, once', async (t) => {
  const api = await startApi(t);
  const token = await signUp(api);
  const browser = openBrowser(api);
  t.match(await browser.call('POST', url, { token }), {
    status: 400,
    json: { code: 'INVALID_PASSWORD', message: /newPassword/ },
  });
  t.match(await browser.call('POST', url, { token, password: 'Wrong1234' }), {
    status: 400,
    json: { code: 'INVALID_PASSWORD' },
  });
  const reply = await browser.call('POST', url, { token, password: me.password });
  t.match(reply, {
    status: 200,
    json: { status: true, token: /^[\w-]{43}$/, user: { emailVerified: true } },
  });
  t.equal((await browser.call('GET', '/api/v1/me')).status, 200);
  t.match(await browser.call('POST', url, { token, password: me.password }), {
    status: 400,
    json: { code: 'EMAIL_ALREADY_VERIFIED' },
  });
});

t.test('POST 200: with a new password, which must follow the rules', async (t) => {
  const api = await startApi(t);
  const token = await signUp(api);
  const weak = await api.client('POST', url, { token, newPassword: 'weak' });
  t.match(weak, { status: 400, json: { code: 'VALIDATION_ERROR', message: /newPassword/ } });
  t.equal((await api.client('POST', url, { token, newPassword: 'Password2', name: 'Zed' })).status, 200);
  const signIn = await api.client('POST', '/api/auth/sign-in/email', { ...me, password: 'Password2' });
  t.match(signIn.json, { user: { name: 'Zed' } });
});

t.test('send-verification-email: 200 for every address, and a mail only to unverified ones', async (t) => {
  const api = await startApi(t);
  await signUp(api);
  const send = (email: string) =>
    api.client('POST', '/api/auth/send-verification-email', { email, callbackURL: '/account' });
  const replies = [await send(me.email), await send('owner@example.com'), await send('nobody@example.com')];
  for (const reply of replies) t.match(reply, { status: 200, text: '{"status":true}' });
  const tokens = await tokensOf(api);
  t.equal(tokens.length, 2);
  t.equal((await api.client('POST', url, { token: tokens[1], password: me.password })).status, 200);
});
