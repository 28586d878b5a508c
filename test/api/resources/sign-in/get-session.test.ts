/** GET /api/auth/get-session. */
import t from 'tap';
import { startApi } from '#test/support/api-app.ts';
import { logInOwner, openBrowser } from '#test/support/login.ts';

const api = await startApi(t);
const url = '/api/auth/get-session';

t.test('200: the session and its user, until it ends', async (t) => {
  const browser = openBrowser(api);
  const owner = { email: 'owner@example.com', password: 'Password1' };
  const { token, user } = (await browser.call('POST', '/api/auth/sign-in/email', owner)).json;
  const { json, headers } = await browser.call('GET', url);
  t.match(json, { session: { token, userId: user.id, ipAddress: null, userAgent: null }, user });
  t.equal(Date.parse(json.session.expiresAt) - Date.parse(json.session.createdAt), 86_400_000);
  t.equal(headers['cache-control'], 'private, no-store');
  const cookie = `better-auth.session_token=${token}`;
  t.match(
    (await api.client('GET', url, undefined, { cookie })).json,
    { user },
    'the cookie name without the prefix works too',
  );

  api.advance(86_400_001);
  t.equal((await browser.call('GET', url)).text, 'null');
});

t.test('200: null without a session', async (t) => {
  for (const cookie of ['', 'formbricks.session_token=x', `formbricks.session_token=${'x'.repeat(5000)}`]) {
    const reply = await api.client('GET', url, undefined, { cookie });
    t.match(reply, { status: 200, text: 'null' });
    t.match(reply.headers['content-type'], /^application\/json/);
  }
});

t.test('a cookie that another host may have set does not replace ours', async (t) => {
  const browser = await logInOwner(api);
  const [ours = ''] = [...browser.cookies]
    .filter(([name]) => name.includes('session'))
    .map((pair) => pair.join('='));
  t.match(ours, /^__Secure-/);
  for (const name of ['formbricks.session_token', 'better-auth.session_token', 'next-auth.session-token']) {
    const { json } = await api.client('GET', url, undefined, { cookie: `${name}=planted; ${ours}` });
    t.match(json, { user: { email: 'owner@example.com' } }, name);
  }
});
