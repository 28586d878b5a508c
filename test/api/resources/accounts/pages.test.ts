/** The pages of accounts: their forms, redirects and errors. */
import t from 'tap';
import { publicUrl, type Reply, startApi } from '#test/support/api-app.ts';
import { type Browser, logInOwner, openBrowser } from '#test/support/login.ts';
import { lastMail, mailsOf, type StoredMail } from '#test/support/mails.ts';

const html = { accept: 'text/html,application/xhtml+xml,*/*;q=0.8', 'sec-fetch-site': 'same-origin' };

/** Sends the only form to `action` that a page has, as a browser without scripts does. */
async function submit(
  browser: Browser,
  page: Reply,
  action: string,
  typed: Record<string, string>,
  target = action,
): Promise<Reply> {
  const form = page.text.split('<form ').find((part) => part.includes(`action="${action}"`)) ?? '';
  const carried = [...form.matchAll(/<input type="hidden" name="(\w+)" value="([^"]*)">/g)].map(
    ([, name = '', value = '']): [string, string] => [name, value.replaceAll('&#38;', '&')],
  );
  const body = new URLSearchParams({ ...Object.fromEntries(carried), ...typed }).toString();
  return browser.call('POST', target, body, html);
}

const open = (browser: Browser, path: string): Promise<Reply> => browser.call('GET', path, undefined, html);

const linkIn = ({ body }: StoredMail): string => /https:\S+/.exec(body)?.[0].slice(publicUrl.length) ?? '';

t.test('sign up, confirm, account, log out, log in: each page leads to the next', async (t) => {
  const api = await startApi(t);
  const browser = openBrowser(api);
  const typed = { name: 'Zoë', email: 'zoe@example.com', password: 'Password1' };
  const sent = await submit(browser, await open(browser, '/auth/signup'), '/auth/signup', typed);
  t.match(sent, { status: 303, headers: { location: '/auth/verification-requested?notice=sent' } });
  t.match((await open(browser, String(sent.headers.location))).text, 'it is on its way');

  const action = '/api/auth/callback/token';
  const confirm = await open(browser, linkIn(await lastMail(api)));
  const weak = await submit(browser, confirm, action, { name: 'Zoe', password: 'weak' });
  t.equal(weak.status, 400);
  t.match(weak.text, /id="password-error">Password must have 8 to 128 characters/);
  t.match(weak.text, /id="name"[^>]* value="Zoe"/);
  const confirmed = await submit(browser, weak, action, { name: 'Zoe', password: 'Password1' });
  t.match(confirmed, { status: 302, headers: { location: '/account' } }, 'the link outlives a mistake');
  const again = await submit(browser, weak, action, { name: 'Zoe', password: 'Password1' });
  t.match(again, { status: 401, text: /role="alert">Email already verified/ });
  let account = await open(browser, '/account');
  t.match(account.text, /Zoe<.*zoe@example\.com/);

  browser.cookies.delete('__Host-next-auth.csrf-token');
  account = await open(browser, '/account');
  const out = await submit(browser, account, '/api/auth/signout', {});
  t.equal(out.headers.location, '/auth/login?notice=signed-out');
  const login = await open(browser, '/auth/login?notice=signed-out');
  t.match(login.text, 'You are logged out');
  const back = await submit(browser, login, '/api/auth/callback/credentials', typed);
  t.equal(back.headers.location, '/account');
});

t.test('a form with mistakes keeps its input and shows each mistake at its field', async (t) => {
  const browser = openBrowser(await startApi(t));
  const page = await open(browser, '/auth/signup');
  const typed = { name: '<b>', email: 'nobody', password: 'short' };
  const first = await submit(browser, page, '/auth/signup', { ...typed, email: 'a@b.example' });
  t.equal(first.status, 400);
  t.match(
    first.text,
    /id="name"[^>]* aria-invalid="true" aria-describedby="name-error"[^>]* value="&#60;b&#62;"/,
  );
  t.match(first.text, /id="name-error">Name must have 1 to 250 letters/);
  t.notMatch(first.text, 'short', 'the page does not repeat the password');
  const second = await submit(browser, first, '/auth/signup', { ...typed, name: 'Zoë' });
  t.match(second.text, /id="email-error">E-mail must be an e-mail address/);
  t.match(second.headers['content-security-policy'], "default-src 'none'");
  const fields = { name: 'Zoë', email: 'a@b.example', password: 'x' };
  const third = await submit(browser, second, '/auth/signup', fields);
  t.match(third.text, 'aria-describedby="password-hint password-error"');
});

t.test('a refused login shows the reason and what was typed, in fixed texts only', async (t) => {
  const api = await startApi(t);
  const browser = openBrowser(api);
  const login = await open(browser, '/auth/login?callbackUrl=%2Fapi%2Fdocs');
  const action = '/api/auth/callback/credentials';
  const typed = { email: `owner+"x"${'a'.repeat(490)}😀@example.com`, password: 'Wrong1234' };
  const refused = await submit(browser, login, action, typed);
  t.equal(refused.status, 401);
  t.match(refused.text, 'role="alert">Invalid credentials');
  t.match(refused.text, 'value="owner+&#34;x&#34;aaa');
  t.notMatch(refused.text, 'Wrong1234');
  const right = { email: 'owner@example.com', password: 'Password1' };
  const reply = await submit(browser, refused, action, right);
  t.match(reply, { status: 302, headers: { location: '/api/docs' } }, 'still leads to what was asked for');

  t.match((await open(browser, '/auth/login?error=Email+already+verified')).text, 'Email already verified');
  const planted = await open(browser, '/auth/login?error=Call%20555-1234%20now');
  t.notMatch(planted.text, '555');
  t.match(planted.text, 'This did not work');
});

t.test('pages show their input as text, run no scripts, and cannot be framed', async (t) => {
  const browser = openBrowser(await startApi(t));
  for (const path of ['/auth/login?callbackUrl=', '/auth/verify?token=', '/verify-email-change?token=']) {
    const reply = await open(browser, `${path}${encodeURIComponent('"><script>alert(1)</script>')}`);
    t.equal(reply.status, 200);
    t.equal(reply.headers['content-type'], 'text/html; charset=utf-8');
    t.match(reply.headers['content-security-policy'], "default-src 'none'");
    t.equal(reply.headers['referrer-policy'], 'no-referrer');
    t.notMatch(reply.text, '<script>');
    t.match(reply.text, 'value="&#34;&#62;&#60;script');
  }
});

t.test('a form with a missing or old CSRF token is shown again and changes nothing', async (t) => {
  const api = await startApi(t);
  const fields = { name: 'Zoë', email: 'zoe@example.com', password: 'Password1' };
  const body = new URLSearchParams(fields).toString();
  const bare = await openBrowser(api).call('POST', '/auth/signup', body, html);
  t.equal(bare.status, 403);
  t.match(bare.text, /The form was too old.*\n[\s\S]*value="zoe@example.com"/);
  const browser = openBrowser(api);
  const page = await open(browser, '/auth/signup');
  for (const site of ['cross-site', 'same-site']) {
    const token = /name="csrfToken" value="([^"]+)"/.exec(page.text)?.[1] ?? '';
    const stolen = new URLSearchParams({ ...fields, csrfToken: token }).toString();
    const reply = await browser.call('POST', '/auth/signup', stolen, { ...html, 'sec-fetch-site': site });
    t.equal(reply.status, 403, site);
  }
  t.strictSame(await mailsOf(api), []);
});

t.test('a login leads to the requested page, on our own site only', async (t) => {
  const api = await startApi(t);
  for (const [asked, leads] of [
    ['/api/docs', '/api/docs'],
    [`${publicUrl}/account?x=1`, '/account?x=1'],
    ['https://evil.example/', '/'],
    ['//evil.example', '/'],
    ['/\\evil.example', '/'],
    [`${publicUrl}//evil.example/x`, '/evil.example/x'],
    [`${publicUrl}/\\/evil.example/x`, '/evil.example/x'],
    ['javascript:alert(1)', '/'],
  ] as const) {
    const browser = openBrowser(api);
    const page = await open(browser, `/auth/login?callbackUrl=${encodeURIComponent(asked)}`);
    const reply = await submit(browser, page, '/api/auth/callback/credentials', {
      email: 'owner@example.com',
      password: 'Password1',
    });
    t.equal(reply.status, 302);
    t.equal(reply.headers.location, leads, asked);
  }
});

t.test('429: too many forms are answered with the page, and when to come back', async (t) => {
  const api = await startApi(t, { env: { RATE_LIMITING_DISABLED: '0' } });
  const browser = openBrowser(api);
  let page = await open(browser, '/auth/forgot-password');
  for (let i = 0; i < 5; i++) {
    t.equal((await submit(browser, page, '/auth/forgot-password', { email: 'a@b.example' })).status, 303);
  }
  page = await submit(browser, page, '/auth/forgot-password', { email: 'a@b.example' });
  t.equal(page.status, 429);
  t.match(page.headers['retry-after'], /^\d+$/);
  t.match(page.text, 'Maximum number of requests reached');
});

t.test('PUBLIC_URL with a path: pages and forms are below it', async (t) => {
  const api = await startApi(t, { env: { PUBLIC_URL: 'https://example.com/feedback/' } });
  const browser = openBrowser(api);
  for (const path of ['/', '/auth/login', '/auth/signup', '/auth/verify', '/nothing']) {
    const { text } = await open(browser, path);
    for (const [, address = ''] of text.matchAll(/(?:href|action)="(\/[^"]*)"/g)) {
      t.ok(address.startsWith('/feedback/'), `${path}: ${address}`);
    }
  }
  const login = await open(browser, '/auth/login');
  const typed = { email: 'owner@example.com', password: 'Password1' };
  const action = '/feedback/api/auth/callback/credentials';
  const sent = await submit(browser, login, action, typed, action.replace('/feedback', ''));
  t.equal(sent.headers.location, '/feedback/account');
});

t.test('pages that promise a mail say that there is no mail server', async (t) => {
  const paths = ['/auth/signup', '/auth/verification-requested', '/auth/forgot-password'];
  const warning = /no mail server \(SMTP_URL\)/;
  for (const [env, hasServer] of [
    [{}, false],
    [{ SMTP_URL: 'smtp://127.0.0.1:9', MAIL_FROM: 'a@example.com' }, true],
  ] as const) {
    const api = await startApi(t, { env });
    const browser = openBrowser(api);
    for (const path of paths) t.equal(warning.test((await open(browser, path)).text), !hasServer, path);
    t.notMatch((await open(browser, '/auth/forgot-password/reset')).text, warning);
  }
});

t.test('no page leads to a sign-up that is closed, and each one leads to a new password', async (t) => {
  for (const isOpen of [true, false]) {
    const api = await startApi(t, { env: { SIGNUP_ENABLED: isOpen ? '1' : '0' } });
    const browser = openBrowser(api);
    for (const path of ['/', '/auth/login'])
      t.equal((await open(browser, path)).text.includes('href="/auth/signup"'), isOpen, path);
    const form = await open(browser, '/auth/signup');
    t.match(form, isOpen ? { status: 200, text: '<form' } : { status: 403, text: 'Sign-up is closed' });
    const owner = await logInOwner(api);
    for (const page of ['auth/verification-requested', 'auth/verify', 'account', 'auth/login'])
      t.match((await open(owner, `/${page}`)).text, 'href="/auth/forgot-password"', page);
  }
});
