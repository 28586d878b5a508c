/** The rows that accounts leave behind. test/conversations/accounts.md has the requests and replies. */
import t from 'tap';
import { startApi, type TestApi } from '#test/support/api-app.ts';
import { logInOwner, openBrowser, signUp } from '#test/support/login.ts';
import { lastMail } from '#test/support/mails.ts';

const zoe = { name: 'Zoe', email: 'zoe@example.com', password: 'Password1' };
const owner = { email: 'owner@example.com', password: 'Password1' };

async function verify(api: TestApi): Promise<string> {
  const { token } = await lastMail(api, 'verifyEmail');
  const fields = { token, password: zoe.password };
  return (await openBrowser(api).form('/api/auth/callback/token', fields)).json.url;
}

const organizationsOf = (api: TestApi) =>
  api.context.db.selectFrom('organizations').select(['name', 'isOperators']).orderBy('name').execute();

t.test('an organization of their own is made when a person has verified the address', async (t) => {
  const api = await startApi(t);
  const first = { name: 'My organization', isOperators: 1 };
  await signUp(api, zoe);
  t.same(await organizationsOf(api), [first]);
  t.notMatch(await verify(api), /error=/);
  t.same(await organizationsOf(api), [first, { name: 'Organization of Zoe', isOperators: 0 }]);
});

t.test('none is made if sign-up was closed meanwhile', async (t) => {
  const api = await startApi(t);
  await signUp(api, zoe);
  Object.assign(api.context.config, { isSignupEnabled: false });
  t.notMatch(await verify(api), /error=/);
  t.equal((await organizationsOf(api)).length, 1);
});

t.test('an organization that has lost all its people is given to nobody who signs up', async (t) => {
  const api = await startApi(t);
  await api.context.db.deleteFrom('users').execute();
  await signUp(api, zoe);
  t.notMatch(await verify(api), /error=/);
  t.match(
    await api.context.db
      .selectFrom('memberships')
      .innerJoin('organizations', 'organizations.id', 'memberships.organizationId')
      .select('organizations.name')
      .execute(),
    [{ name: 'Organization of Zoe' }],
  );
});

t.test('passwords, links and sessions are stored as hashes, and ended sessions are deleted', async (t) => {
  const api = await startApi(t, { env: { SESSION_MAX_AGE: '60' } });
  const { db } = api.context;
  const browser = await logInOwner(api);
  const session = browser.cookies.get('__Secure-next-auth.session-token') ?? '';
  await signUp(api, zoe);
  const { token } = await lastMail(api);
  const users = await db.selectFrom('users').selectAll().execute();
  for (const { passwordHash } of users) t.match(passwordHash, /^\$argon2id\$/);
  const rows = [users];
  const links = await db.selectFrom('accountTokens').selectAll().execute();
  const sessions = await db.selectFrom('sessions').selectAll().execute();
  t.equal(links.length + sessions.length, 2);
  for (const secret of [session, token, 'Password1']) {
    t.not(secret, '');
    t.notMatch(JSON.stringify([rows, links, sessions]), secret);
  }
  api.advance(60_000);
  await logInOwner(api);
  t.equal((await db.selectFrom('sessions').selectAll().execute()).length, 1);
});

t.test('of two concurrent uses of a link, one changes the password', async (t) => {
  const api = await startApi(t);
  const browser = openBrowser(api);
  await browser.form('/auth/forgot-password', { email: owner.email });
  const { token } = await lastMail(api, 'resetPassword');
  const passwords = ['Password2', 'Password3'];
  const both = await Promise.all(
    passwords.map((password) => browser.form('/auth/forgot-password/reset', { token, password })),
  );
  t.strictSame(both.map(({ status }) => status).sort(), [303, 400]);
  const chosen = passwords[both.findIndex(({ status }) => status === 303)] ?? '';
  t.notMatch((await openBrowser(api).logIn(owner.email, chosen)).json.url, /error=/);
});
