/** The page for the second factor: turn it on, renew backup codes, turn it off, and everything that it refuses. */
import { Writable } from 'node:stream';
import { pino } from 'pino';
import t, { type Test } from 'tap';
import { tooManyRequests } from '#api/errors.ts';
import { type ApiOptions, type Reply, startApi, type TestApi } from '#test/support/api-app.ts';
import { codeOf, wrongCodeOf } from '#test/support/authenticator.ts';
import { type Browser, logInOwner, openBrowser } from '#test/support/login.ts';
import { addPerson } from '#test/support/people.ts';

const PATH = '/account/second-factor';
const LOGIN = '/auth/login?callbackUrl=%2Faccount%2Fsecond-factor';
const ENDED = `${PATH}?notice=ended`;
const STEP = 30_000;
const email = 'owner@example.com';
const password = 'Password1';
const html = { accept: 'text/html', 'sec-fetch-site': 'same-origin' };
type Step = 'begin' | 'confirm' | 'renew' | 'disable';

async function begin(t: Test, options: ApiOptions = {}): Promise<TestApi> {
  return startApi(t, options);
}

const open = (browser: Browser, path = PATH): Promise<Reply> => browser.call('GET', path, undefined, html);

/** The hidden fields of the form of one step. */
function hiddenOf(page: Reply, step: Step): Record<string, string> {
  const form = page.text.split('<form ').find((part) => part.includes(`name="step" value="${step}"`));
  if (form === undefined) throw new Error(`No form to ${step}: ${page.status} ${page.text.slice(-1500)}`);
  return Object.fromEntries(
    [...(form.split('</form>')[0] ?? '').matchAll(/<input type="hidden" name="(\w+)" value="([^"]*)">/g)].map(
      ([, name = '', value = '']) => [name, value],
    ),
  );
}

/** Sends the form of one step as the page has it. */
function submit(
  browser: Browser,
  page: Reply,
  step: Step,
  typed: Record<string, string>,
  headers: Record<string, string> = {},
): Promise<Reply> {
  const body = new URLSearchParams({ ...hiddenOf(page, step), ...typed }).toString();
  return browser.call('POST', PATH, body, { ...html, ...headers });
}

const keyIn = (page: Reply): string => /<code id="key">([A-Z2-7 ]+)<\/code>/.exec(page.text)?.[1] ?? '';
const codesIn = (page: Reply): readonly string[] =>
  page.text.match(/\b[a-z2-9]{5}-[a-z2-9]{5}\b(?=[\n<])/g) ?? [];
const isLoggedIn = async (browser: Browser) => (await browser.call('GET', '/api/v1/me')).status === 200;
const rows = async ({ context: { db } }: TestApi) => ({
  on: (await db.selectFrom('users').select('id').where('twoFactorEnabled', '=', 1).execute()).length,
  secrets: (await db.selectFrom('twoFactors').select('userId').execute()).length,
  codes: (await db.selectFrom('backupCodes').select('digest').execute()).length,
});

/** Somebody whose second factor is on, with the page as it is then. */
async function turnedOn(api: TestApi, browser: Browser, address = email) {
  const begun = await submit(browser, await open(browser), 'begin', { password });
  const done = await submit(browser, begun, 'confirm', { code: await codeOf(api, address) });
  if (done.status !== 303) throw new Error(done.text);
  api.advance(STEP);
  return { page: await open(browser), backupCodes: codesIn(begun), key: keyIn(begun) };
}

t.test('turn it on: password, key and backup codes, first code; all other sessions end', async (t) => {
  const api = await begin(t);
  const browser = await logInOwner(api);
  const other = await logInOwner(api);
  const account = await open(browser, '/account');
  t.match(account.text, /<a href="\/account\/second-factor">Second factor<\/a>: off/);

  const off = await open(browser);
  t.match(off, { status: 200, headers: { 'cache-control': /no-store/, 'referrer-policy': 'no-referrer' } });
  t.match(off.text, /<strong>off<\/strong>/);
  t.match(off.text, /id="password" name="password" type="password" autocomplete="current-password" required/);

  const begun = await submit(browser, off, 'begin', { password });
  t.match(begun, { status: 200, headers: { 'cache-control': /no-store/ } });
  const key = keyIn(begun);
  t.match(key, /^([A-Z2-7]{4} ){7}[A-Z2-7]{4}$/, 'the key is written in groups of four');
  const link = /href="(otpauth:[^"]+)"/.exec(begun.text)?.[1]?.replaceAll('&#38;', '&') ?? '';
  t.match(link, `otpauth://totp/feedback.example.com:owner%40example.com?secret=${key.replaceAll(' ', '')}&`);
  t.equal(new Set(codesIn(begun)).size, 10);
  t.match(begun.text, /only this once/);
  t.match(begun.text, /name="code" type="text" autocomplete="one-time-code" required inputmode="numeric"/);
  t.strictSame(await rows(api), { on: 0, secrets: 1, codes: 10 }, 'logins need no code yet');

  const before = [...browser.cookies.values()];
  const code = await codeOf(api, email);
  const typed = `${code.slice(0, 3)} ${code.slice(3)} `;
  const done = await submit(browser, begun, 'confirm', { code: typed });
  t.match(done, { status: 303, headers: { location: `${PATH}?notice=on` } });
  t.notSame([...browser.cookies.values()], before, 'the browser has a new session');
  t.notOk(await isLoggedIn(other), 'the other session has ended');
  const on = await open(browser, String(done.headers.location));
  t.match(on.text, /role="status">The second factor is on. All other sessions of your account have ended/);
  t.match(on.text, /10 of your backup codes are left/);
  t.notMatch(on.text, key);
  t.strictSame(codesIn(on), [], 'backup codes are shown once');
  t.match((await open(browser, '/account')).text, 'Second factor</a>: on');
  const stranger = await addPerson(api, 'Mia', 'member');
  t.notMatch((await open(stranger.browser, `${PATH}?notice=on`)).text, 'role="status"', 'the notice is true');
});

t.test('when it is on: renew the backup codes, turn it off, each with the password', async (t) => {
  const api = await begin(t);
  const browser = await logInOwner(api);
  const { page, backupCodes } = await turnedOn(api, browser);
  const renewed = await submit(browser, page, 'renew', { password });
  t.match(renewed, { status: 200, headers: { 'cache-control': /no-store/ } });
  const codes = codesIn(renewed);
  t.equal(new Set([...codes, ...backupCodes]).size, 20);
  t.match(renewed.text, /only this once/);

  const logIn = (backupCode: string) =>
    openBrowser(api).form('/api/auth/callback/credentials', { email, password, backupCode });
  t.equal((await logIn(backupCodes[0] ?? '')).status, 401, 'the earlier backup codes are invalid');
  t.equal((await logIn(codes[0] ?? '')).status, 200);
  t.match((await open(browser)).text, /9 of your backup codes are left/);

  const off = await submit(browser, page, 'disable', { password });
  t.match(off, { status: 303, headers: { location: `${PATH}?notice=off` } });
  t.match((await open(browser, String(off.headers.location))).text, /role="status">The second factor is off/);
  t.strictSame(await rows(api), { on: 0, secrets: 0, codes: 0 });
});

t.test('a wrong password: the error is next to its field, and nothing changes', async (t) => {
  const api = await begin(t);
  const browser = await logInOwner(api);
  const off = await open(browser);
  for (const wrong of ['Wrong1234', '', 'x'.repeat(1000)]) {
    const reply = await submit(browser, off, 'begin', { password: wrong });
    t.equal(reply.status, 400);
    t.match(reply.text, /id="password"[^>]* aria-invalid="true" aria-describedby="password-error"/);
    t.match(reply.text, /id="password-error">This is not the password of your account/);
    t.match(reply.text, 'role="alert">The password is wrong');
  }
  t.strictSame(await rows(api), { on: 0, secrets: 0, codes: 0 });
  const { page } = await turnedOn(api, browser);
  for (const [step, id, other] of [
    ['renew', 'renew-password', 'disable-password'],
    ['disable', 'disable-password', 'renew-password'],
  ] as const) {
    const reply = await submit(browser, page, step, { password: 'Wrong1234' });
    t.equal(reply.status, 400, step);
    t.match(reply.text, `id="${id}-error"`);
    t.notMatch(reply.text, `id="${other}-error"`);
  }
  t.strictSame(await rows(api), { on: 1, secrets: 1, codes: 10 });
});

t.test('a wrong code: the key and the backup codes stay on the page', async (t) => {
  const api = await begin(t);
  const browser = await logInOwner(api);
  let page = await submit(browser, await open(browser), 'begin', { password });
  const [key, codes] = [keyIn(page), codesIn(page)];
  for (const code of [await wrongCodeOf(api, email), '', 'abc', '１２３４５６']) {
    page = await submit(browser, page, 'confirm', { code });
    t.equal(page.status, 400);
    t.match(page.text, /role="alert">The code is wrong/);
    t.match(page.text, /id="code"[^>]* aria-invalid="true" aria-describedby="code-error"/);
    t.equal(keyIn(page), key);
    t.strictSame(codesIn(page), codes);
    t.match(page.headers['cache-control'], 'no-store');
  }
  t.equal((await submit(browser, page, 'confirm', { code: await codeOf(api, email) })).status, 303);
});

t.test('429: five attempts a minute for all forms; the page shows the wait and keeps its data', async (t) => {
  const api = await begin(t, { env: { RATE_LIMITING_DISABLED: '0' } });
  const browser = await logInOwner(api);
  const off = await open(browser);
  await submit(browser, off, 'begin', { password: 'Wrong1234' });
  let page = await submit(browser, off, 'begin', { password });
  const [key, codes] = [keyIn(page), codesIn(page)];
  for (let i = 0; i < 3; i++) page = await submit(browser, page, 'confirm', { code: '000000' });
  const refused = await submit(browser, page, 'confirm', { code: await codeOf(api, email) });
  t.match(refused, { status: 429, headers: { 'retry-after': /^\d+$/ } });
  t.match(refused.text, /role="alert">Too many attempts for now. Wait \d+ seconds/);
  t.equal(keyIn(refused), key);
  t.strictSame(codesIn(refused), codes);
  const program = await browser.call('POST', '/api/auth/two-factor/enable', { password });
  t.equal(program.status, 429, 'the API counts towards the same limit');
  api.advance(60_001);
  t.equal((await submit(browser, refused, 'confirm', { code: await codeOf(api, email) })).status, 303);
});

t.test('429: too many passwords are being checked; the answer is the same page', async (t) => {
  const api = await begin(t, {
    parts: ({ passwords }) => ({
      passwords: {
        ...passwords,
        verify: async (given, hash) => {
          if (given === 'Busy12345') throw tooManyRequests(2);
          return passwords.verify(given, hash);
        },
      },
    }),
  });
  const browser = await logInOwner(api);
  const reply = await submit(browser, await open(browser), 'begin', { password: 'Busy12345' });
  t.match(reply, { status: 429, headers: { 'retry-after': 2 } });
  t.match(reply.text, 'name="step" value="begin"');
});

t.test('without a session the page leads to the login and back', async (t) => {
  const api = await begin(t);
  const browser = openBrowser(api);
  t.match(await open(browser), { status: 302, headers: { location: LOGIN } });
  const login = await open(browser, LOGIN);
  const target = /name="callbackUrl" value="([^"]+)"/.exec(login.text)?.[1] ?? '';
  const fields = { csrfToken: hiddenToken(login), callbackUrl: target, email, password };
  const body = new URLSearchParams(fields).toString();
  const back = await browser.call('POST', '/api/auth/callback/credentials', body, html);
  t.match(back, { status: 302, headers: { location: PATH } });
});

const hiddenToken = (page: Reply): string => /name="csrfToken" value="([^"]+)"/.exec(page.text)?.[1] ?? '';

t.test('a session ends between the steps: after a new login the key in the app still works', async (t) => {
  const api = await begin(t);
  const browser = await logInOwner(api);
  const begun = await submit(browser, await open(browser), 'begin', { password });
  await api.context.db.deleteFrom('sessions').execute();
  const refused = await submit(browser, begun, 'confirm', { code: await codeOf(api, email) });
  t.match(refused, { status: 303, headers: { location: ENDED } });
  const login = await open(browser, ENDED);
  t.match(login, { status: 302, headers: { location: LOGIN.replace('?', '?error=SessionRequired&') } });
  t.match(
    (await open(browser, String(login.headers.location))).text,
    /class="ask" role="status">Your session has ended/,
  );
  await browser.logIn(email, password);
  const page = await open(browser);
  t.match(page.text, /You have begun to set it up/);
  t.equal(keyIn(page), '', 'the page does not show the key without the password');
  t.equal((await submit(browser, page, 'confirm', { code: await codeOf(api, email) })).status, 303);
  t.strictSame(await rows(api), { on: 1, secrets: 1, codes: 10 });
});

t.test('after a change in another window each form explains it and shows the current state', async (t) => {
  const api = await begin(t);
  const browser = await logInOwner(api);
  const off = await open(browser);
  const first = await submit(browser, off, 'begin', { password });
  const second = await submit(browser, off, 'begin', { password });
  t.not(keyIn(first), keyIn(second));
  const code = await codeOf(api, email);
  const outdated = await submit(browser, first, 'confirm', { code });
  t.equal(outdated.status, 400);
  t.match(outdated.text, /This key does not serve any more/);
  t.equal(keyIn(outdated), '');
  t.equal((await submit(browser, second, 'confirm', { code })).status, 303, 'the code was not used up');
  api.advance(STEP);

  for (const [page, step, typed] of [
    [off, 'begin', { password }],
    [second, 'confirm', { code: await codeOf(api, email) }],
  ] as const) {
    const reply = await submit(browser, page, step, typed);
    t.equal(reply.status, 400, step);
    t.match(reply.text, /role="alert">Meanwhile the second factor was turned on/);
    t.match(reply.text, /<strong>on<\/strong>/);
  }
  const on = await open(browser);
  t.equal((await submit(browser, on, 'disable', { password })).status, 303);
  for (const step of ['renew', 'disable'] as const) {
    const reply = await submit(browser, on, step, { password });
    t.equal(reply.status, 400, step);
    t.match(reply.text, /role="alert">Meanwhile the second factor was turned off/);
    t.match(reply.text, /<strong>off<\/strong>/);
  }
  const gone = await submit(browser, second, 'confirm', { code: '000000' });
  t.match(gone.text, /This key does not serve any more/);
});

t.test('after another person logged in, a form of the first one changes nothing for either', async (t) => {
  const api = await begin(t);
  const browser = await logInOwner(api);
  const mia = await addPerson(api, 'Mia', 'member');
  const begun = await submit(browser, await open(browser), 'begin', { password });
  await browser.logIn(mia.email, password);
  const before = await rows(api);
  for (const [page, step, typed] of [
    [begun, 'confirm', { code: await codeOf(api, email) }],
    [await open(await logInOwner(api)), 'begin', { password }],
  ] as const) {
    const csrfToken = hiddenToken(await open(browser));
    const reply = await submit(browser, page, step, { ...typed, csrfToken });
    t.equal(reply.status, 400, step);
    t.match(reply.text, /role="alert">Meanwhile mia@example.com logged in/);
    t.notMatch(reply.text, email);
    t.equal(keyIn(reply), '', 'the key is not shown to another person');
  }
  t.strictSame(await rows(api), before);
});

t.test('403: a form of another site, or an old one, changes nothing and can be sent again', async (t) => {
  const api = await begin(t);
  const browser = await logInOwner(api);
  const off = await open(browser);
  const cases: readonly (readonly [Record<string, string>, Record<string, string>])[] = [
    [{ csrfToken: '' }, {}],
    [{ csrfToken: 'x' }, {}],
    [{}, { 'sec-fetch-site': 'cross-site' }],
    [{}, { 'sec-fetch-site': 'same-site' }],
    [{ userId: '' }, { 'sec-fetch-site': 'same-site' }],
  ];
  for (const [typed, headers] of cases) {
    const reply = await submit(browser, off, 'begin', { password, ...typed }, headers);
    t.equal(reply.status, 403);
    t.match(reply.text, /role="alert">The form was too old/);
  }
  t.strictSame(await rows(api), { on: 0, secrets: 0, codes: 0 });
  const begun = await submit(browser, off, 'begin', { password });
  const code = await codeOf(api, email);
  const old = await submit(browser, begun, 'confirm', { code, csrfToken: 'old' });
  t.equal(old.status, 403);
  t.equal(keyIn(old), keyIn(begun));
  t.strictSame(codesIn(old), codesIn(begun));
  t.equal((await submit(browser, old, 'confirm', { code })).status, 303);
});

t.test('4xx: forms that the page would never send get a page with the error', async (t) => {
  const api = await begin(t);
  const browser = await logInOwner(api);
  const begun = await submit(browser, await open(browser), 'begin', { password });
  const odd = [
    { step: 'turnOn' },
    { step: '__proto__' },
    { step: '' },
    { code: '\ud83d\ude00' },
    { backupCodes: '<script>alert(1)</script> aaaaa-aaaaa' },
    { key: '<b>' },
  ];
  for (const fields of odd) {
    const reply = await submit(browser, begun, 'confirm', { code: '000000', ...fields });
    t.equal(reply.status, 400, JSON.stringify(fields));
    t.notMatch(reply.text, /<script|<b>/);
  }
  for (const body of [
    '{"step":1,"password":{}}',
    '{"step":["begin"]}',
    '{',
    'a=%00',
    'x'.repeat(20_000),
    '%',
  ]) {
    const reply = await browser.call('POST', PATH, body, html);
    t.ok(reply.status >= 400 && reply.status < 500, `${reply.status} ${body.slice(0, 20)}`);
  }
  t.strictSame(await rows(api), { on: 0, secrets: 1, codes: 10 });
});

t.test('names and addresses are text on the page, in the link too', async (t) => {
  const api = await begin(t);
  const odd = `"'><script>x</script>&@example.com`;
  const browser = await logInOwner(api);
  await api.context.db.updateTable('users').set({ email: odd, name: '<i>N</i>' }).execute();
  const begun = await submit(browser, await open(browser), 'begin', { password });
  t.equal(begun.status, 200);
  t.notMatch(begun.text, /<script|<i>/);
  t.match(begun.text, '&#34;&#39;&#62;&#60;script&#62;');
  t.match(begun.text, /href="otpauth:\/\/totp\/feedback.example.com:%22/);
});

const isRefused = ({ status, headers }: Reply): boolean => status === 400 || headers.location === ENDED;

t.test('two concurrent set-ups: one key, one session, and a page for both', async (t) => {
  const api = await begin(t);
  const browser = await logInOwner(api);
  const off = await open(browser);
  const both = await Promise.all(['a', 'b'].map(() => submit(browser, off, 'begin', { password })));
  t.strictSame(
    both.map(({ status }) => status),
    [200, 200],
  );
  t.strictSame(await rows(api), { on: 0, secrets: 1, codes: 10 });
  const code = await codeOf(api, email);
  const replies = await Promise.all(both.map((page) => submit(browser, page, 'confirm', { code })));
  t.equal(replies.filter(({ headers }) => headers.location === `${PATH}?notice=on`).length, 1);
  t.equal(replies.filter(isRefused).length, 1, 'one key is outdated, or its session has ended');
  t.ok(await isLoggedIn(browser));
  t.strictSame(await rows(api), { on: 1, secrets: 1, codes: 10 });
});

t.test('one form sent three times at once: turned on once, and no reply is a 500', async (t) => {
  const api = await begin(t);
  const browser = await logInOwner(api);
  const begun = await submit(browser, await open(browser), 'begin', { password });
  const code = await codeOf(api, email);
  const replies = await Promise.all(['a', 'b', 'c'].map(() => submit(browser, begun, 'confirm', { code })));
  const on = replies.filter(({ headers }) => headers.location === `${PATH}?notice=on`);
  t.equal(on.length, 1);
  t.equal(replies.filter(isRefused).length, 2);
  t.equal((await rows(api)).on, 1);
});

t.test(
  'backup codes renewed while a login waits: the old code does not finish it, the new one does',
  async (t) => {
    const api = await begin(t);
    const browser = await logInOwner(api);
    const { page, backupCodes } = await turnedOn(api, browser);
    const waiting = openBrowser(api);
    await waiting.call('POST', '/api/auth/sign-in/email', { email, password });
    const codes = codesIn(await submit(browser, page, 'renew', { password }));
    const finish = (code = '') => waiting.call('POST', '/api/auth/two-factor/verify-backup-code', { code });
    t.equal((await finish(backupCodes[0])).status, 401);
    t.equal((await finish(codes[0])).status, 200);
  },
);

t.test('no secret in an address, a log line or an audit event', async (t) => {
  const lines: string[] = [];
  const stream = new Writable({
    write: (chunk, _encoding, done) => {
      lines.push(String(chunk));
      done();
    },
  });
  const api = await begin(t, {
    env: { AUDIT_LOG_ENABLED: '1' },
    log: pino({ level: 'trace' }, stream),
    parts: ({ passwords }) => ({
      passwords: {
        ...passwords,
        verify: async (given, hash) => {
          if (given === 'Fault1234') throw new Error('a fault');
          return passwords.verify(given, hash);
        },
      },
    }),
  });
  const browser = await logInOwner(api);
  const begun = await submit(browser, await open(browser), 'begin', { password });
  const fault = { password: 'Fault1234', key: keyIn(begun), backupCodes: codesIn(begun).join(' ') };
  t.equal((await submit(browser, await open(browser), 'begin', fault)).status, 500);
  t.match(lines.join(''), /a request failed/);
  const wrong = await wrongCodeOf(api, email);
  await submit(browser, begun, 'confirm', { code: wrong });
  const code = await codeOf(api, email);
  const done = await submit(browser, begun, 'confirm', { code });
  const renewed = await submit(browser, await open(browser), 'renew', { password });
  const off = await submit(browser, await open(browser), 'disable', { password });
  const key = keyIn(begun);
  const events = await api.context.db.selectFrom('auditEvents').selectAll().execute();
  t.strictSame(
    events
      .filter(({ action, status }) => action === 'updated' && status === 'success')
      .map(({ changes }) => JSON.parse(changes).fields[0]),
    ['twoFactorEnabled', 'backupCodes', 'twoFactorEnabled'],
  );
  const written = JSON.stringify([events, lines, done.headers.location, off.headers.location]);
  const secrets = [
    key,
    key.replaceAll(' ', ''),
    password,
    fault.password,
    `"${code}"`,
    ...codesIn(begun),
    ...codesIn(renewed),
  ];
  for (const secret of secrets) t.notOk(written.includes(secret), secret);
});
