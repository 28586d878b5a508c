/** The password changes while the old one is being checked. The old one must not work any more. */
import t, { type Test } from 'tap';
import { startApi, type TestApi } from '#test/support/api-app.ts';
import { logInOwner, openBrowser } from '#test/support/login.ts';
import { lastMail, mailsOf } from '#test/support/mails.ts';

const owner = { email: 'owner@example.com', password: 'Password1' };

/** Starts an API that calls `between` after a password was checked and before the result is used. */
async function start(t: Test): Promise<{ api: TestApi; setBetween: (work: () => Promise<unknown>) => void }> {
  let between = async (): Promise<unknown> => undefined;
  const api = await startApi(t, {
    parts: ({ passwords }) => ({
      passwords: {
        hash: passwords.hash,
        async verify(password, stored) {
          const isRight = await passwords.verify(password, stored);
          const work = between;
          between = async () => undefined;
          await work();
          return isRight;
        },
      },
    }),
  });
  return {
    api,
    setBetween(work) {
      between = work;
    },
  };
}

async function resetPassword(api: TestApi): Promise<void> {
  const browser = openBrowser(api);
  await browser.form('/auth/forgot-password', { email: owner.email });
  const { token } = await lastMail(api, 'resetPassword');
  const reply = await browser.form('/auth/forgot-password/reset', { token, password: 'Password2' });
  if (reply.status !== 303) throw new Error(`The password was not changed: ${reply.text}`);
}

t.test('no session begins with the old password after the change', async (t) => {
  const { api, setBetween } = await start(t);
  setBetween(() => resetPassword(api));
  const browser = openBrowser(api);
  const reply = await browser.logIn(owner.email, owner.password);
  t.equal(reply.status, 401);
  t.match(reply.json.url, /error=Invalid%20credentials/);
  t.equal((await browser.call('GET', '/api/v1/me')).status, 401);
  t.strictSame(await api.context.db.selectFrom('sessions').selectAll().execute(), []);
  t.notMatch((await browser.logIn(owner.email, 'Password2')).json.url, /error=/, 'the new one is accepted');
});

t.test('no session begins with the old address after it has changed', async (t) => {
  const { api, setBetween } = await start(t);
  const browser = await logInOwner(api);
  setBetween(() => api.context.db.updateTable('users').set({ email: 'new@example.com' }).execute());
  t.match(
    (await openBrowser(api).logIn(owner.email, owner.password)).json.url,
    /error=Invalid%20credentials/,
  );
  t.equal((await browser.call('GET', '/api/auth/session')).json.user.email, 'new@example.com');
});

t.test('the old password sends no link for a new address after the change', async (t) => {
  const { api, setBetween } = await start(t);
  const browser = await logInOwner(api);
  setBetween(() => resetPassword(api));
  const wish = { email: 'thief@example.com', password: owner.password };
  const reply = await browser.form('/account/email', wish);
  t.equal(reply.status, 400);
  t.match(reply.json.details, { password: String });
  const { db } = api.context;
  t.strictSame(await db.selectFrom('accountTokens').selectAll().execute(), []);
  t.strictSame(await mailsOf(api, 'changeEmail'), []);
});
