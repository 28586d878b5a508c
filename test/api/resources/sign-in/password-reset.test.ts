/** POST /api/auth/request-password-reset, and POST /api/auth/reset-password with `newPassword`. */
import t from 'tap';
import { publicUrl, startApi, type TestApi } from '#test/support/api-app.ts';
import { logInOwner } from '#test/support/login.ts';

const ask = '/api/auth/request-password-reset';
const reset = '/api/auth/reset-password';
const email = 'owner@example.com';

async function linkOf({ context }: TestApi): Promise<URL> {
  const { body } = await context.db.selectFrom('mailOutbox').select('body').executeTakeFirstOrThrow();
  return new URL(/https:\S+/.exec(body)?.[0] ?? '');
}

t.test(
  '200: the mail leads to the page of the client, and its token changes the password once',
  async (t) => {
    const api = await startApi(t);
    const browser = await logInOwner(api);
    const reply = await api.client('POST', ask, { email, redirectTo: '/my/reset?lang=en' });
    t.match(reply, { status: 200, json: { status: true, message: /^If this email exists/ } });
    const link = await linkOf(api);
    t.equal(`${link.origin}${link.pathname}`, `${publicUrl}/my/reset`);
    t.equal(link.searchParams.get('lang'), 'en');
    const token = link.searchParams.get('token');

    t.match(await api.client('POST', reset, { token, newPassword: 'short' }), {
      status: 400,
      json: { details: { newPassword: /8 to 128/ } },
    });
    t.match(await api.client('POST', `${reset}?token=${token}`, { newPassword: 'Password2' }), {
      status: 200,
      json: { status: true },
    });
    t.equal((await browser.call('GET', '/api/v1/me')).status, 401, 'the earlier session has ended');
    t.match(await api.client('POST', reset, { token, newPassword: 'Password3' }), {
      status: 400,
      json: { code: 'INVALID_TOKEN', message: 'Invalid token' },
    });
    const signIn = (password: string) => api.client('POST', '/api/auth/sign-in/email', { email, password });
    t.equal((await signIn('Password1')).status, 401);
    t.equal((await signIn('Password2')).status, 200);
  },
);

t.test(
  '200: an unknown address gets the same reply; without redirectTo the link leads to our page',
  async (t) => {
    const api = await startApi(t);
    const unknown = await api.client('POST', ask, { email: 'nobody@example.com' });
    t.equal((await api.client('POST', ask, { email })).text, unknown.text);
    const link = await linkOf(api);
    t.equal(`${link.origin}${link.pathname}`, `${publicUrl}/auth/forgot-password/reset`);
  },
);

t.test('403: a page of another site never gets a token', async (t) => {
  const api = await startApi(t);
  for (const redirectTo of [
    'https://evil.example',
    '//evil.example',
    'javascript:x',
    `${publicUrl}.evil.example`,
  ]) {
    const reply = await api.client('POST', ask, { email, redirectTo });
    t.match(reply, { status: 403, json: { code: 'INVALID_REDIRECT_URL' } }, redirectTo);
  }
  t.equal((await api.context.db.selectFrom('mailOutbox').select('id').execute()).length, 0);
});

t.test('403: the page of a survey, which other people write, never gets a token', async (t) => {
  const api = await startApi(t);
  for (const redirectTo of [
    '/s/abc',
    '/%73/abc?x=1',
    '//feedback.example.com/x/../s/abc',
    '/app/s/abc',
    '/%zz',
  ]) {
    const reply = await api.client('POST', ask, { email, redirectTo });
    t.match(reply, { status: 403, json: { code: 'INVALID_REDIRECT_URL' } }, redirectTo);
  }
  t.equal((await api.context.db.selectFrom('mailOutbox').select('id').execute()).length, 0);
});

t.test('400: names missing fields', async (t) => {
  const api = await startApi(t);
  t.match(await api.client('POST', ask, { email: 'x' }), { status: 400, json: { code: 'INVALID_EMAIL' } });
  t.match(await api.client('POST', reset, {}), {
    status: 400,
    json: { details: { token: 'Required', password: 'Required' } },
  });
  t.match(await api.client('POST', reset, { token: 'x', newPassword: 7 }), { status: 400 });
});
