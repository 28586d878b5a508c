/** POST /api/auth/sign-out. */
import t from 'tap';
import { startApi } from '#test/support/api-app.ts';
import { logInOwner } from '#test/support/login.ts';

const api = await startApi(t);
const owner = { email: 'owner@example.com', password: 'Password1' };

t.test('200: ends the sessions of all cookies', async (t) => {
  const browser = await logInOwner(api);
  const older = browser.cookies.get('__Secure-next-auth.session-token') ?? '';
  const { token } = (await api.client('POST', '/api/auth/sign-in/email', owner)).json;
  const cookie = `__Secure-next-auth.session-token=${older}; __Secure-formbricks.session_token=${token}`;
  const reply = await api.client('POST', '/api/auth/sign-out', undefined, { cookie });
  t.match(reply, { status: 200, json: { success: true } });
  t.equal([reply.headers['set-cookie']].flat().length, 2);
  t.ok([reply.headers['set-cookie']].flat().every((line) => String(line).includes('Max-Age=0')));
  for (const value of [older, token]) {
    const headers = { cookie: `next-auth.session-token=${value}` };
    t.strictSame((await api.client('GET', '/api/auth/session', undefined, headers)).json, {});
  }
});

t.test('200 without a session, and with a body that is not JSON 400', async (t) => {
  t.match(await api.client('POST', '/api/auth/sign-out'), { status: 200, json: { success: true } });
  t.equal((await api.client('POST', '/api/auth/sign-out', '{')).status, 400);
});

t.test('403 from another origin: the session stays', async (t) => {
  const browser = await logInOwner(api);
  const headers = { origin: 'https://evil.example' };
  const reply = await browser.call('POST', '/api/auth/sign-out', undefined, headers);
  t.match(reply, { status: 403, json: { code: 'INVALID_ORIGIN' } });
  t.equal((await browser.call('GET', '/api/v1/me')).status, 200);
});
