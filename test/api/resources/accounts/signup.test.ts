/** A setting decides who may sign up. */
import t, { type Test } from 'tap';
import { startApi, type TestApi } from '#test/support/api-app.ts';
import { openBrowser } from '#test/support/login.ts';
import { lastMail, mailsOf } from '#test/support/mails.ts';

const me = { name: 'Zoe', email: 'zoe@example.com', password: 'Password1' };
const usersOf = (api: TestApi) => api.context.db.selectFrom('users').select('email').execute();

const begin = (t: Test, isOpen: boolean): Promise<TestApi> =>
  startApi(t, { env: { SIGNUP_ENABLED: isOpen ? '1' : '0' } });

async function verify(api: TestApi): Promise<string> {
  const { token } = await lastMail(api, 'verifyEmail');
  return (await openBrowser(api).form('/api/auth/callback/token', { token, password: me.password })).json.url;
}

t.test('403: closed by default; the reply says whom to ask', async (t) => {
  const api = await startApi(t, { env: { SIGNUP_ENABLED: '' } });
  const reply = await api.client('POST', '/api/auth/signup', me);
  t.equal(reply.status, 403);
  t.match(reply.json, { code: 'forbidden', message: /closed.*operator/ });
  const browser = { accept: 'text/html,application/xhtml+xml,*/*;q=0.8' };
  const page = await api.client('POST', '/api/auth/signup', new URLSearchParams(me).toString(), browser);
  t.equal(page.status, 403);
  t.match(page.headers['content-type'], 'text/html');
  t.match(page.text, /Sign-up is closed.*operator/s);
  const form = await api.client('GET', '/auth/signup', undefined, browser);
  t.equal(form.status, 403);
  t.notMatch(form.text, '<form');
  for (const path of ['/', '/auth/login']) {
    t.notMatch(
      (await api.client('GET', path, undefined, browser)).text,
      '/auth/signup',
      `${path} has no link to the sign-up`,
    );
  }
  t.equal((await usersOf(api)).length, 1, 'only the owner of the first start exists');
  t.same(await mailsOf(api), []);
});

t.test('open: the pages lead to the form', async (t) => {
  const api = await begin(t, true);
  for (const path of ['/', '/auth/login']) {
    t.match((await api.client('GET', path, undefined, { accept: 'text/html' })).text, '/auth/signup', path);
  }
  t.equal((await api.client('GET', '/auth/signup', undefined, { accept: 'text/html' })).status, 200);
});

t.test('200: open: each person gets an organization that is not the operator’s', async (t) => {
  const api = await begin(t, true);
  t.equal((await api.client('POST', '/api/auth/signup', me)).status, 200);
  t.notMatch(await verify(api), /error=/);
  const organizations = await api.context.db
    .selectFrom('organizations')
    .select(['name', 'isOperators'])
    .orderBy('name')
    .execute();
  t.same(organizations, [
    { name: 'My organization', isOperators: 1 },
    { name: 'Organization of Zoe', isOperators: 0 },
  ]);
});

t.test('closed after a sign-up: the address can be verified, but no organization is created', async (t) => {
  const api = await begin(t, true);
  await api.client('POST', '/api/auth/signup', me);
  Object.assign(api.context.config, { isSignupEnabled: false });
  t.notMatch(await verify(api), /error=/);
  t.equal((await api.context.db.selectFrom('organizations').select('id').execute()).length, 1);
});

t.test('an organization that has lost all its people is given to nobody who signs up', async (t) => {
  const api = await begin(t, false);
  const browser = { accept: 'text/html' };
  await api.context.db.deleteFrom('users').execute();
  t.equal((await api.client('POST', '/api/auth/signup', me)).status, 403);
  t.equal((await api.client('GET', '/auth/signup', undefined, browser)).status, 403);
  t.notMatch((await api.client('GET', '/', undefined, browser)).text, '/auth/signup');

  Object.assign(api.context.config, { isSignupEnabled: true });
  t.equal((await api.client('POST', '/api/auth/signup', me)).status, 200);
  t.notMatch(await verify(api), /error=/);
  t.match(
    await api.context.db
      .selectFrom('memberships')
      .innerJoin('organizations', 'organizations.id', 'memberships.organizationId')
      .select(['organizations.name', 'organizations.isOperators'])
      .execute(),
    [{ name: 'Organization of Zoe', isOperators: 0 }],
    'with an open sign-up, a person gets an organization of their own',
  );
});
