/** POST /api/auth/sign-in/email. */
import t from 'tap';
import { createPasswords } from '#api/auth/password.ts';
import { publicUrl, startApi } from '#test/support/api-app.ts';
import { openBrowser } from '#test/support/login.ts';

const url = '/api/auth/sign-in/email';
const owner = { email: 'owner@example.com', password: 'Password1' };

t.test('200: a token, the user and a cookie', async (t) => {
  const api = await startApi(t);
  const reply = await api.client('POST', url, { ...owner, email: ' Owner@Example.com ' });
  t.equal(reply.status, 200);
  t.match(reply.json, {
    redirect: false,
    token: /^[\w-]{43}$/,
    user: { email: owner.email, emailVerified: true, image: null, twoFactorEnabled: false },
  });
  t.match(Object.keys(reply.json.user).sort(), [
    ...['createdAt', 'email', 'emailVerified', 'id', 'image', 'name', 'twoFactorEnabled', 'updatedAt'],
  ]);
  t.equal(
    reply.headers['set-cookie'],
    `__Secure-formbricks.session_token=${reply.json.token}; Max-Age=86400; Path=/; HttpOnly; Secure; SameSite=Lax`,
  );
  t.equal(reply.headers['cache-control'], 'private, no-store');
});

t.test('the name of the cookie without https, and its expiry without rememberMe', async (t) => {
  const api = await startApi(t, { env: { PUBLIC_URL: 'http://localhost:8080' } });
  const reply = await api.client('POST', url, { ...owner, rememberMe: false });
  t.equal(
    reply.headers['set-cookie'],
    `formbricks.session_token=${reply.json.token}; Path=/; HttpOnly; SameSite=Lax`,
  );
});

t.test('sessions of both login APIs work in both, and one sign-out ends them', async (t) => {
  const api = await startApi(t);
  const browser = openBrowser(api);
  await browser.logIn(owner.email, owner.password);
  t.match((await browser.call('GET', '/api/auth/get-session')).json, { user: { email: owner.email } });
  const older = [...browser.cookies].find(([name]) => name.includes('session'));
  t.match(older, ['__Secure-next-auth.session-token', /./]);

  await browser.call('POST', url, owner);
  const names = [...browser.cookies.keys()].filter((name) => name.includes('session'));
  t.strictSame(names, ['__Secure-formbricks.session_token'], 'the cookie of the older login is deleted');
  t.match((await browser.call('GET', '/api/auth/session')).json, { user: { email: owner.email } });
  t.equal((await browser.call('GET', '/api/v1/me')).status, 200);

  await browser.logIn(owner.email, owner.password);
  t.strictSame(
    [...browser.cookies.keys()].filter((name) => name.includes('session')),
    ['__Secure-next-auth.session-token'],
  );
  await browser.call('POST', '/api/auth/sign-out');
  t.strictSame((await browser.call('GET', '/api/auth/session')).json, {});
});

t.test('a planted session cookie is replaced at login', async (t) => {
  const api = await startApi(t);
  const planted = 'planted-by-somebody-else';
  const cookie = `__Secure-formbricks.session_token=${planted}; next-auth.session-token=${planted}`;
  const reply = await api.client('POST', url, owner, { cookie });
  t.not(reply.json.token, planted);
  const set = [reply.headers['set-cookie']].flat().map(String);
  t.ok(set.some((line) => line.startsWith('next-auth.session-token=;') && line.includes('Max-Age=0')));
  t.equal((await api.client('GET', '/api/auth/get-session', undefined, { cookie })).text, 'null');
});

t.test('401: the same reply for an unknown address, a wrong password and no password', async (t) => {
  const api = await startApi(t);
  const wrong = await api.client('POST', url, { ...owner, password: 'Wrong1234' });
  t.equal(wrong.status, 401);
  t.strictSame(wrong.json, {
    code: 'INVALID_EMAIL_OR_PASSWORD',
    message: 'Invalid email or password',
    details: {},
  });
  for (const change of [{ email: 'nobody@example.com' }, { password: '' }, { password: 'A1'.repeat(100) }]) {
    const reply = await api.client('POST', url, { ...owner, password: 'Wrong1234', ...change });
    t.equal(reply.status, 401);
    t.equal(reply.text, wrong.text);
    t.equal(reply.headers['set-cookie'], undefined);
  }
});

t.test('401: computes one hash for every address', async (t) => {
  let hashes = 0;
  const api = await startApi(t, {
    parts: ({ random }) => ({
      passwords: createPasswords(random, async () => {
        hashes += 1;
        return Buffer.alloc(32);
      }),
    }),
  });
  for (const email of [owner.email, 'nobody@example.com']) {
    hashes = 0;
    t.equal((await api.client('POST', url, { email, password: 'Wrong1234' })).status, 401);
    t.equal(hashes, 1, email);
  }
});

t.test('403: the address is not verified, or the account is inactive', async (t) => {
  const api = await startApi(t);
  const users = api.context.db.updateTable('users');
  await users.set({ emailVerified: null }).execute();
  t.match(await api.client('POST', url, owner), { status: 403, json: { code: 'EMAIL_NOT_VERIFIED' } });
  await users.set({ isActive: 0 }).execute();
  t.match(await api.client('POST', url, owner), { status: 403, json: { code: 'ACCOUNT_INACTIVE' } });
  const wrong = await api.client('POST', url, { ...owner, password: 'Wrong1234' });
  t.equal(wrong.status, 401, 'a wrong password does not reveal the state of the account');
});

t.test('callbackURL: kept on our own origin, refused for others', async (t) => {
  const api = await startApi(t);
  for (const callbackURL of ['/account', `${publicUrl}/account`]) {
    const { json } = await api.client('POST', url, { ...owner, callbackURL });
    t.match(json, { redirect: true, url: callbackURL });
  }
  const foreign = [
    ...['https://evil.example', '//evil.example', '/\\evil.example', '/\t/evil.example', '\\\\evil.example'],
    ...[
      'javascript:alert(1)',
      'https://feedback.example.com.evil.example',
      `${publicUrl}@evil.example/`,
      'http://[',
    ],
    'http://feedback.example.com/',
    // Some readers see our origin in these addresses, others a different site.
    ...['https:evil.example', 'https:/evil.example', 'account', '/a\r\nb', ' /account', '/a\\b'],
    ...[`blob:${publicUrl}/x`, 'https://evil.example@feedback.example.com/'],
    `/${'a'.repeat(2_000)}`,
  ];
  for (const callbackURL of foreign) {
    const reply = await api.client('POST', url, { ...owner, callbackURL });
    t.match(reply, { status: 403, json: { code: 'INVALID_CALLBACK_URL' } }, callbackURL);
    t.equal(reply.headers['set-cookie'], undefined, 'no session begins');
  }
});

t.test('403 for pages of other origins', async (t) => {
  const api = await startApi(t);
  const foreign: Record<string, string>[] = [
    { origin: 'https://evil.example' },
    { origin: 'null' },
    { origin: `${publicUrl}.evil.example` },
    { 'sec-fetch-site': 'cross-site' },
    { 'sec-fetch-site': 'same-site' },
  ];
  for (const headers of foreign) {
    const reply = await api.client('POST', url, owner, headers);
    t.match(reply, { status: 403, json: { code: 'INVALID_ORIGIN', message: 'Invalid origin' } });
    t.equal(reply.headers['set-cookie'], undefined);
  }
  const own = await api.client('POST', url, owner, { origin: publicUrl, 'sec-fetch-site': 'same-origin' });
  t.equal(own.status, 200);
});

t.test('the audit log has the login and the failure', async (t) => {
  const api = await startApi(t, { env: { AUDIT_LOG_ENABLED: '1' } });
  await api.client('POST', url, { ...owner, password: 'Wrong1234' });
  await api.client('POST', url, owner);
  const events = await api.context.db.selectFrom('auditEvents').select(['action', 'changes']).execute();
  t.match(events.map(({ action }) => action).sort(), ['authenticationAttempted', 'authenticationSucceeded']);
  t.notMatch(JSON.stringify(events), /owner@|Password1|Wrong/);
});
