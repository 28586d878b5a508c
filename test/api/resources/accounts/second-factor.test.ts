/** The older login of an account with a second factor. */
import t from 'tap';
import { publicUrl, startApi } from '#test/support/api-app.ts';
import { codeOf, wrongCodeOf } from '#test/support/authenticator.ts';
import { logInOwner, openBrowser } from '#test/support/login.ts';

const email = 'owner@example.com';
const password = 'Password1';
const STEP = 30_000;

const api = await startApi(t);
const owner = await logInOwner(api);
const { backupCodes } = (await owner.call('POST', '/api/auth/two-factor/enable', { password })).json;
const code = await codeOf(api, email);
await owner.call('POST', '/api/auth/two-factor/verify-totp', { code });
api.advance(STEP);

const logIn = (more: Record<string, string>, browser = openBrowser(api)) =>
  browser.form('/api/auth/callback/credentials', { email, password, ...more });
const errorOf = ({ json }: { json: { url: string } }) => new URL(json.url).searchParams.get('error');

t.test(
  '401 without a code, with a wrong one, and with a wrong backup code, in the texts of Formbricks',
  async (t) => {
    const cases: readonly (readonly [Record<string, string>, string])[] = [
      [{}, 'second factor required'],
      [{ totpCode: '' }, 'second factor required'],
      [{ totpCode: await wrongCodeOf(api, email) }, 'Invalid two factor code'],
      [{ totpCode: code }, 'Invalid two factor code'],
      [{ backupCode: 'aaaaa-aaaaa' }, 'Invalid backup code'],
    ];
    for (const [more, text] of cases) {
      const browser = openBrowser(api);
      const reply = await logIn(more, browser);
      t.equal(reply.status, 401);
      t.equal(errorOf(reply), text);
      t.equal((await browser.call('GET', '/api/v1/me')).status, 401);
    }
    const wrongPassword = await logIn({ password: 'Wrong1234', totpCode: await codeOf(api, email) });
    t.equal(errorOf(wrongPassword), 'Invalid credentials', 'the second factor is not revealed');
  },
);

t.test('200 with the code, and with a backup code', async (t) => {
  const totpCode = await codeOf(api, email);
  t.strictSame((await logIn({ totpCode })).json, { url: publicUrl });
  t.equal(errorOf(await logIn({ totpCode })), 'Invalid two factor code', 'it works once');
  t.strictSame((await logIn({ backupCode: backupCodes[0].replace('-', '') })).json, { url: publicUrl });
  t.equal(errorOf(await logIn({ backupCode: backupCodes[0] })), 'Invalid backup code', 'it works once');
  api.advance(STEP);
  const both = await Promise.all(['a', 'b'].map(async () => logIn({ backupCode: backupCodes[1] })));
  t.equal(both.filter(({ status }) => status === 200).length, 1, 'one of two concurrent logins succeeds');
});

t.test('the login page asks for the code', async (t) => {
  const browser = openBrowser(api);
  const html = { accept: 'text/html' };
  const { csrfToken } = (await browser.call('GET', '/api/auth/csrf')).json;
  const submit = (fields: Record<string, string>) =>
    browser.call(
      'POST',
      '/api/auth/callback/credentials',
      new URLSearchParams({ csrfToken, email, password, ...fields }).toString(),
      html,
    );
  const refused = await submit({});
  t.equal(refused.status, 302);
  const location = String(refused.headers.location);
  t.equal(location, '/api/auth/error?error=second%20factor%20required');
  const next = await browser.call('GET', location, undefined, html);
  const page = await browser.call('GET', String(next.headers.location), undefined, html);
  t.match(page.text, 'name="totpCode"');
  t.match(page.text, 'Enter the code of your authenticator app');
  const other = /href="([^"]*with=backup[^"]*)"/.exec(page.text)?.[1]?.replaceAll('&#38;', '&') ?? '';
  t.match((await browser.call('GET', other, undefined, html)).text, 'name="backupCode"');
  const loggedIn = await submit({ totpCode: await codeOf(api, email) });
  t.match(loggedIn, { status: 302, headers: { location: '/' } });
  t.equal((await browser.call('GET', '/api/v1/me')).status, 200);
});

t.test('401: an account without backup codes gets its own error', async (t) => {
  await api.context.db.deleteFrom('backupCodes').execute();
  t.equal(errorOf(await logIn({ backupCode: backupCodes[2] })), 'No backup codes found');
});
