/** Login and logout. */
import t from 'tap';
import { publicUrl, startApi } from '#test/support/api-app.ts';
import { logInOwner, openBrowser } from '#test/support/login.ts';

const api = await startApi(t);
const url = '/api/auth/callback/credentials';
const owner = { email: 'owner@example.com', password: 'Password1' };
const errorUrl = (text: string): string => `${publicUrl}/api/auth/error?error=${encodeURIComponent(text)}`;

t.test('GET csrf: a token and its cookie, which stays the same', async (t) => {
  const browser = openBrowser(api);
  const reply = await browser.call('GET', '/api/auth/csrf');
  t.equal(reply.status, 200);
  t.match(reply.json, { csrfToken: /^[0-9a-f]{64}$/ });
  t.match(
    reply.headers['set-cookie'],
    /^__Host-next-auth\.csrf-token=[0-9a-f]{64}%7C[0-9a-f]{64}; Path=\/; HttpOnly; Secure; SameSite=Lax$/,
  );
  t.strictSame((await browser.call('GET', '/api/auth/csrf')).json, reply.json);
});

t.test('GET providers: lists the two ways to log in', async (t) => {
  const { json } = await api.client('GET', '/api/auth/providers');
  t.strictSame(Object.keys(json), ['credentials', 'token']);
  t.strictSame(Object.keys(json.token), ['id', 'name', 'type', 'signinUrl', 'callbackUrl']);
});

t.test('200: json=true answers {url} and sets the session cookie', async (t) => {
  const browser = openBrowser(api);
  const reply = await browser.form(url, { ...owner, callbackUrl: '/somewhere?x=1' });
  t.equal(reply.status, 200);
  t.strictSame(reply.json, { url: `${publicUrl}/somewhere?x=1` });
  t.match(
    reply.headers['set-cookie'],
    /^__Secure-next-auth\.session-token=[\w-]{43}; Max-Age=86400; Path=\/; HttpOnly; Secure; SameSite=Lax$/,
  );
  const session = await browser.call('GET', '/api/auth/session');
  t.match(session.json, { user: { email: owner.email, name: 'Owner' }, expires: String });
  t.equal(session.headers['cache-control'], 'private, no-store');
});

t.test('302: without json, to the callback', async (t) => {
  const browser = openBrowser(api);
  const reply = await browser.form(url, { ...owner, json: 'false' });
  t.equal(reply.status, 302);
  t.equal(reply.headers.location, publicUrl);
  t.ok(browser.cookies.has('__Secure-next-auth.session-token'));
});

t.test('JSON bodies are read too', async (t) => {
  const browser = openBrowser(api);
  const { csrfToken } = (await browser.call('GET', '/api/auth/csrf')).json;
  const reply = await browser.call('POST', url, { ...owner, csrfToken, json: true });
  t.equal(reply.status, 200);
  t.strictSame(reply.json, { url: publicUrl });
});

t.test('a callback to another site leads to the start page', async (t) => {
  for (const elsewhere of [
    'https://evil.example/',
    '//evil.example',
    'javascript:alert(1)',
    'https://feedback.example.com@evil.example',
    '\\\\evil.example',
  ]) {
    const reply = await openBrowser(api).form(url, { ...owner, callbackUrl: elsewhere });
    t.equal(reply.json.url, publicUrl, elsewhere);
  }
});

t.test('401: unknown user, wrong password, no password: the same answer', async (t) => {
  const answers = [];
  for (const fields of [
    { email: 'nobody@example.com', password: 'Password1' },
    { email: owner.email, password: 'Password2' },
    { email: owner.email, password: 'x'.repeat(129) },
    { email: owner.email },
    { password: 'Password1' },
    { email: 'x'.repeat(300), password: 'Password1' },
    {},
  ]) {
    const browser = openBrowser(api);
    const reply = await browser.form(url, { ...fields });
    answers.push({ status: reply.status, text: reply.text, isLoggedIn: browser.cookies.size > 1 });
  }
  for (const answer of answers) {
    t.strictSame(answer, {
      status: 401,
      text: JSON.stringify({ url: errorUrl('Invalid credentials') }),
      isLoggedIn: false,
    });
  }
  const page = await openBrowser(api).form(url, { ...owner, password: 'x', json: '' });
  t.equal(page.status, 302);
  t.equal(page.headers.location, errorUrl('Invalid credentials'));
});

t.test('a login without our CSRF token is refused', async (t) => {
  const browser = openBrowser(api);
  const missing = await browser.call('POST', url, new URLSearchParams({ ...owner, json: 'true' }).toString());
  t.equal(missing.status, 200);
  t.strictSame(missing.json, { url: `${publicUrl}/api/auth/signin?csrf=true` });
  await browser.call('GET', '/api/auth/csrf');
  const wrong = await browser.call(
    'POST',
    url,
    new URLSearchParams({ ...owner, csrfToken: 'f'.repeat(64) }).toString(),
  );
  t.equal(wrong.status, 302);
  t.equal(wrong.headers.location, `${publicUrl}/api/auth/signin?csrf=true`);
  browser.cookies.set('__Host-next-auth.csrf-token', `made-up|${'0'.repeat(64)}`);
  const forged = await browser.call(
    'POST',
    url,
    new URLSearchParams({ ...owner, csrfToken: 'made-up', json: 'true' }).toString(),
  );
  t.match(forged.json.url, /csrf=true/);
  t.notOk(browser.cookies.has('__Secure-next-auth.session-token'));
});

t.test('an inactive account: only its password reveals it, and its sessions end', async (t) => {
  const fresh = await startApi(t);
  const browser = await logInOwner(fresh);
  await fresh.context.db.updateTable('users').set({ isActive: 0 }).execute();
  t.strictSame((await browser.call('GET', '/api/auth/session')).json, {});
  t.equal((await browser.call('GET', '/api/v1/me')).status, 401);
  t.match((await openBrowser(fresh).logIn(owner.email, 'Password1')).json.url, /currently%20inactive/);
  t.match((await openBrowser(fresh).logIn(owner.email, 'Wrong1234')).json.url, /Invalid%20credentials/);
});

t.test('signout ends the session, and needs a CSRF token', async (t) => {
  const browser = await logInOwner(api);
  const cookie = browser.cookies.get('__Secure-next-auth.session-token') ?? '';
  const refused = await browser.call('POST', '/api/auth/signout', 'json=true');
  t.match(refused.json.url, /csrf=true/);
  t.equal((await browser.call('GET', '/api/v1/me')).status, 200);
  const reply = await browser.form('/api/auth/signout', {});
  t.strictSame(reply.json, { url: publicUrl });
  t.notOk(browser.cookies.has('__Secure-next-auth.session-token'), 'the cookie is deleted');
  browser.cookies.set('__Secure-next-auth.session-token', cookie);
  t.equal((await browser.call('GET', '/api/v1/me')).status, 401, 'the old cookie has no session');
});

t.test('a session expires', async (t) => {
  const fresh = await startApi(t, { env: { SESSION_MAX_AGE: '60' } });
  const browser = await logInOwner(fresh);
  fresh.advance(59_999);
  t.equal((await browser.call('GET', '/api/v1/me')).status, 200);
  fresh.advance(1);
  t.equal((await browser.call('GET', '/api/v1/me')).status, 401);
  await logInOwner(fresh);
  const rows = await fresh.context.db.selectFrom('sessions').select('hashedToken').execute();
  t.equal(rows.length, 1, 'the expired session is deleted');
});

t.test('the database has only a hash of a session', async (t) => {
  const fresh = await startApi(t);
  const browser = await logInOwner(fresh);
  const token = browser.cookies.get('__Secure-next-auth.session-token');
  const rows = await fresh.context.db.selectFrom('sessions').selectAll().execute();
  t.equal(rows.length, 1);
  t.notMatch(JSON.stringify(rows), String(token));
});

t.test('302: error and signin lead to the login page with their query', async (t) => {
  const error = await api.client('GET', '/api/auth/error?error=Invalid%20credentials');
  t.equal(error.status, 302);
  t.equal(error.headers.location, `${publicUrl}/auth/login?error=Invalid%20credentials`);
  t.equal(
    (await api.client('GET', '/api/auth/signin?csrf=true')).headers.location,
    `${publicUrl}/auth/login?csrf=true`,
  );
});

t.test('pages show their input as text, run no scripts, and cannot be framed', async (t) => {
  for (const path of ['/auth/login?error=', '/auth/verify?token=', '/auth/forgot-password/reset?token=']) {
    const reply = await api.client('GET', `${path}${encodeURIComponent('"><script>alert(1)</script>')}`);
    t.equal(reply.status, 200);
    t.equal(reply.headers['content-type'], 'text/html; charset=utf-8');
    t.match(reply.headers['content-security-policy'], "default-src 'none'");
    t.equal(reply.headers['referrer-policy'], 'no-referrer');
    t.notMatch(reply.text, '<script>');
  }
});

t.test('refuses a form of another origin, even with a token that fits its cookie', async (t) => {
  for (const [site, admitted] of [
    ['same-origin', true],
    ['none', true],
    ['same-site', false],
    ['cross-site', false],
  ] as const) {
    const browser = openBrowser(api);
    const { csrfToken } = (await browser.call('GET', '/api/auth/csrf')).json;
    const form = new URLSearchParams({ ...owner, csrfToken, json: 'true' }).toString();
    const reply = await browser.call('POST', url, form, { 'sec-fetch-site': site });
    t.equal(reply.status, 200);
    t.equal(browser.cookies.has('__Secure-next-auth.session-token'), admitted, site);
    t.equal(reply.json.url, admitted ? publicUrl : `${publicUrl}/api/auth/signin?csrf=true`);
  }
});
