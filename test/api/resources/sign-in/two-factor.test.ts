/** The routes below /api/auth/two-factor: set up, log in with a code or a backup code, disable. */
import t from 'tap';
import { hashToken } from '#api/auth/session.ts';
import { startApi, type TestApi } from '#test/support/api-app.ts';
import { codeOf, wrongCodeOf } from '#test/support/authenticator.ts';
import { type Browser, logInOwner, openBrowser } from '#test/support/login.ts';
import { addPerson } from '#test/support/people.ts';

const email = 'owner@example.com';
const password = 'Password1';
const base = '/api/auth/two-factor';
const STEP = 30_000;

/** Returns the owner after enabling a second factor. */
async function enabled(api: TestApi): Promise<{ browser: Browser; backupCodes: readonly string[] }> {
  const browser = await logInOwner(api);
  const { json } = await browser.call('POST', `${base}/enable`, { password });
  const reply = await browser.call('POST', `${base}/verify-totp`, { code: await codeOf(api, email) });
  if (reply.status !== 200) throw new Error(reply.text);
  api.advance(STEP);
  return { browser, backupCodes: json.backupCodes };
}

/** Starts a login with the right password and without a code. */
async function held(api: TestApi, change: object = {}): Promise<Browser> {
  const browser = openBrowser(api);
  const reply = await browser.call('POST', '/api/auth/sign-in/email', { email, password, ...change });
  if (reply.json.twoFactorRedirect !== true) throw new Error(reply.text);
  return browser;
}
const verify = (browser: Browser, code: string, more: object = {}) =>
  browser.call('POST', `${base}/verify-totp`, { code, ...more });
const verifyBackup = (browser: Browser, code: unknown, more: object = {}) =>
  browser.call('POST', `${base}/verify-backup-code`, { code, ...more });
const isLoggedIn = async (browser: Browser) => (await browser.call('GET', '/api/v1/me')).status === 200;

t.test(
  'enable: an otpauth: address and ten codes; logins need a code after the first correct one',
  async (t) => {
    const api = await startApi(t);
    const browser = await logInOwner(api);
    const other = await logInOwner(api);
    const { status, json } = await browser.call('POST', `${base}/enable`, { password, issuer: 'My shop' });
    t.equal(status, 200);
    t.match(
      json.totpURI,
      /^otpauth:\/\/totp\/My%20shop:owner%40example.com\?secret=[A-Z2-7]{32}&issuer=My%20shop&digits=6&period=30$/,
    );
    t.equal(new Set(json.backupCodes).size, 10);
    for (const code of json.backupCodes) t.match(code, /^[a-z2-9]{5}-[a-z2-9]{5}$/);
    const signIn = () => api.client('POST', '/api/auth/sign-in/email', { email, password });
    t.match((await signIn()).json, { user: { twoFactorEnabled: false } }, 'logins need no code yet');
    t.match(await verifyBackup(browser, json.backupCodes[0]), {
      status: 400,
      json: { code: 'TWO_FACTOR_NOT_ENABLED' },
    });

    t.match(await verify(browser, await wrongCodeOf(api, email)), {
      status: 401,
      json: { code: 'INVALID_CODE' },
    });
    const before = browser.cookies.get('__Secure-next-auth.session-token');
    const confirmed = await verify(browser, await codeOf(api, email));
    t.match(confirmed, { status: 200, json: { token: String, user: { email, twoFactorEnabled: true } } });
    t.not(confirmed.json.token, before, 'the browser has a new session');
    t.ok(await isLoggedIn(browser));
    t.notOk(await isLoggedIn(other), 'sessions that began without a code have ended');
    t.match(await signIn(), { json: { twoFactorRedirect: true, twoFactorMethods: ['totp'] } });
    t.match((await browser.call('GET', '/api/v1/me')).json, { twoFactorEnabled: true });

    const again = await browser.call('POST', `${base}/enable`, { password });
    t.match(
      again,
      { status: 400, json: { code: 'TWO_FACTOR_ALREADY_ENABLED' } },
      'the secret cannot be replaced',
    );
  },
);

t.test('the database stores neither the secret nor a backup code in plain text', async (t) => {
  const api = await startApi(t);
  const { backupCodes, browser } = await enabled(api);
  const { json } = await browser.call('POST', `${base}/get-totp-uri`, { password });
  const base32 = /secret=([A-Z2-7]+)/.exec(json.totpURI)?.[1] ?? '';
  const { db } = api.context;
  const rows = JSON.stringify([
    await db.selectFrom('twoFactors').selectAll().execute(),
    await db.selectFrom('backupCodes').selectAll().execute(),
  ]);
  for (const secret of [base32, ...backupCodes, ...backupCodes.map((code) => code.replace('-', ''))]) {
    t.notOk(rows.includes(secret));
  }
});

t.test('a login with a code: no session before it, and the code works once', async (t) => {
  const api = await startApi(t);
  await enabled(api);
  const browser = await held(api);
  t.notOk(await isLoggedIn(browser), 'the password alone is not enough');
  t.equal((await browser.call('GET', '/api/auth/get-session')).text, 'null');
  t.match(await verify(browser, await wrongCodeOf(api, email)), {
    status: 401,
    json: { code: 'INVALID_CODE', message: 'Invalid code' },
  });
  const code = await codeOf(api, email);
  const reply = await verify(browser, code);
  t.match(reply, { status: 200, json: { token: /^[\w-]{43}$/, user: { email } } });
  t.match(
    [reply.headers['set-cookie']].flat().join('\n'),
    /__Secure-formbricks.session_token=[\w-]{43}; Max-Age=86400;/,
  );
  t.notOk(
    [...browser.cookies.keys()].some((name) => name.includes('two_factor')),
    'the cookie of the waiting login is deleted',
  );
  t.ok(await isLoggedIn(browser));

  const thief = await held(api);
  t.equal((await verify(thief, code)).status, 401, 'a code works once');
  t.equal((await verify(thief, await codeOf(api, email, -1))).status, 401, 'an earlier code is refused');
  api.advance(STEP);
  const next = await codeOf(api, email);
  const typed = ` ${next.slice(0, 3)} ${next.slice(3)}`;
  t.equal((await verify(thief, typed)).status, 200, 'a code in two groups is accepted');
});

t.test(
  'the cookie of a waiting login expires after ten minutes or five codes, and works for nothing else',
  async (t) => {
    const api = await startApi(t);
    await enabled(api);
    const late = await held(api);
    const [name, token = ''] = [...late.cookies].find(([one]) => one.includes('two_factor')) ?? [];
    t.equal(name, '__Secure-formbricks.two_factor');
    const cookie = `next-auth.session-token=${token}`;
    t.equal(
      (await api.client('GET', '/api/v1/me', undefined, { cookie })).status,
      401,
      'it is not a session',
    );
    const reset = await api.client('POST', '/api/auth/reset-password', { token, newPassword: 'Password2' });
    t.equal(reset.status, 400, 'the token resets no password');
    api.advance(600_001);
    t.match(await verify(late, await codeOf(api, email)), {
      status: 401,
      json: { code: 'INVALID_TWO_FACTOR_COOKIE' },
    });

    const guesser = await held(api);
    for (let i = 0; i < 5; i++) t.equal((await verify(guesser, await wrongCodeOf(api, email))).status, 401);
    t.match(await verify(guesser, await codeOf(api, email)), {
      status: 400,
      json: { code: 'TOO_MANY_ATTEMPTS_REQUEST_NEW_CODE' },
    });
    t.match(await verify(openBrowser(api), '123456'), {
      status: 401,
      json: { code: 'INVALID_TWO_FACTOR_COOKIE' },
    });
  },
);

t.test(
  'a waiting login ends when the password or the address changes, and when the account is deactivated',
  async (t) => {
    const changes = [
      { passwordHash: 'another' },
      { email: 'new@example.com' },
      { isActive: 0 as const },
      { twoFactorEnabled: 0 as const },
    ];
    for (const change of changes) {
      const api = await startApi(t);
      await enabled(api);
      const browser = await held(api);
      const code = await codeOf(api, email);
      await api.context.db.updateTable('users').set(change).execute();
      t.match(
        await verify(browser, code),
        { status: 401, json: { code: 'INVALID_TWO_FACTOR_COOKIE' } },
        JSON.stringify(change),
      );
      t.notOk(await isLoggedIn(browser));
    }
  },
);

t.test('the login of another account ends the waiting one in the same browser', async (t) => {
  const api = await startApi(t);
  await enabled(api);
  const mia = await addPerson(api, 'Mia', 'member');
  const browser = await held(api);
  await browser.logIn(mia.email, password);
  t.notOk(browser.cookies.has('__Secure-formbricks.two_factor'));
  await browser.call('POST', `${base}/enable`, { password });
  t.match(await verify(browser, await codeOf(api, mia.email)), {
    status: 200,
    json: { user: { email: mia.email } },
  });
});

t.test('rememberMe: false still holds after the code', async (t) => {
  const api = await startApi(t);
  await enabled(api);
  const browser = await held(api, { rememberMe: false });
  const reply = await verify(browser, await codeOf(api, email));
  t.match([reply.headers['set-cookie']].flat().join('\n'), /formbricks.session_token=[\w-]{43}; Path/);
});

t.test('backup codes: each works once, with or without its hyphen', async (t) => {
  const api = await startApi(t);
  const { backupCodes } = await enabled(api);
  const [first = '', second = ''] = backupCodes;
  t.match(await verifyBackup(await held(api), 'aaaaa-aaaaa'), {
    status: 401,
    json: { code: 'INVALID_BACKUP_CODE', message: 'Invalid backup code' },
  });
  const browser = await held(api);
  t.equal((await verifyBackup(browser, first)).status, 200);
  t.ok(await isLoggedIn(browser));
  t.equal((await verifyBackup(await held(api), first)).status, 401, 'a backup code works once');
  t.equal((await verifyBackup(await held(api), ` ${second.replace('-', '').toUpperCase()}`)).status, 200);
  const silent = await verifyBackup(await held(api), backupCodes[2], { disableSession: true });
  t.notMatch(String(silent.headers['set-cookie']), /session_token=[\w-]{43}/);
});

t.test('two concurrent calls: a backup code or a code of the app logs in once', async (t) => {
  const api = await startApi(t);
  const { backupCodes } = await enabled(api);
  const both = async (send: (browser: Browser) => Promise<{ status: number }>) => {
    const browsers = [await held(api), await held(api), await held(api)];
    return (await Promise.all(browsers.map(send))).map(({ status }) => status).sort();
  };
  t.strictSame(await both((browser) => verifyBackup(browser, backupCodes[0])), [200, 401, 401]);
  const code = await codeOf(api, email);
  t.strictSame(await both((browser) => verify(browser, code)), [200, 401, 401]);
});

t.test(
  'generate-backup-codes replaces all; get-totp-uri returns the same secret; after disable the password is enough',
  async (t) => {
    const api = await startApi(t);
    const { browser, backupCodes } = await enabled(api);
    const uri = async () => (await browser.call('POST', `${base}/get-totp-uri`, { password })).json.totpURI;
    t.equal(await uri(), await uri());
    const renewed = await browser.call('POST', `${base}/generate-backup-codes`, { password });
    t.match(renewed, { status: 200, json: { status: true } });
    t.equal((await verifyBackup(await held(api), backupCodes[0])).status, 401);
    t.equal((await verifyBackup(await held(api), renewed.json.backupCodes[0])).status, 200);

    const waiting = await held(api);
    t.match(await browser.call('POST', `${base}/disable`, { password }), {
      status: 200,
      json: { status: true },
    });
    t.equal((await verifyBackup(waiting, renewed.json.backupCodes[1])).status, 401);
    t.match((await api.client('POST', '/api/auth/sign-in/email', { email, password })).json, {
      token: String,
    });
    t.match(await browser.call('POST', `${base}/get-totp-uri`, { password }), {
      status: 400,
      json: { code: 'TOTP_NOT_ENABLED' },
    });
    t.match(await browser.call('POST', `${base}/generate-backup-codes`, { password }), {
      status: 400,
      json: { code: 'TWO_FACTOR_NOT_ENABLED' },
    });
    t.match(await verify(browser, '123456'), { status: 400, json: { code: 'TOTP_NOT_ENABLED' } });
  },
);

t.test('enabling needs a session, the password, and our own origin', async (t) => {
  const api = await startApi(t);
  const browser = await logInOwner(api);
  for (const name of ['enable', 'disable', 'get-totp-uri', 'generate-backup-codes']) {
    const url = `${base}/${name}`;
    t.match(await api.client('POST', url, { password }), { status: 401, json: { code: 'UNAUTHORIZED' } });
    t.match(await api.manage('POST', url, { password }), { status: 401 }, 'an API key is not enough');
    for (const wrong of ['Wrong1234', '', 'x'.repeat(1000)]) {
      const reply = await browser.call('POST', url, { password: wrong });
      t.match(reply, { status: 400, json: { code: 'INVALID_PASSWORD' } });
    }
    const foreign = await browser.call('POST', url, { password }, { origin: 'https://evil.example' });
    t.match(foreign, { status: 403, json: { code: 'INVALID_ORIGIN' } });
    for (const body of ['', '{', '[]', '{"password":1}', '{"password":null}']) {
      t.match(await browser.call('POST', url, body), { status: 400, json: { message: /./ } });
    }
  }
  const foreign = await verify(openBrowser(api), '123456');
  t.equal(foreign.status, 401);
});

t.test('wrong types of codes: 400, or a wrong code', async (t) => {
  const api = await startApi(t);
  await enabled(api);
  for (const name of ['verify-totp', 'verify-backup-code']) {
    for (const code of [1, null, [], {}, true]) {
      const reply = await (await held(api)).call('POST', `${base}/${name}`, { code });
      t.match(reply, {
        status: 400,
        json: { code: 'VALIDATION_ERROR', message: '[body.code] must be string' },
      });
    }
    for (const code of ['', '１２３４５６', 'x'.repeat(100_000), '\ud83d\ude00', "' or 1=1 --"]) {
      t.equal((await (await held(api)).call('POST', `${base}/${name}`, { code })).status, 401);
    }
  }
});

t.test('five codes a minute for each account, on every route and from every address', async (t) => {
  const api = await startApi(t, { env: { RATE_LIMITING_DISABLED: '0' } });
  const { browser, backupCodes } = await enabled(api);
  api.advance(60_000);
  const wrong = await wrongCodeOf(api, email);
  const waiting = await held(api);
  t.equal((await verify(waiting, wrong)).status, 401);
  t.equal((await verifyBackup(waiting, 'x')).status, 401);
  const older = (more: Record<string, string>) =>
    openBrowser(api).form('/api/auth/callback/credentials', { email, password, ...more });
  t.equal((await older({ totpCode: wrong })).status, 401);
  t.equal((await older({ backupCode: 'x' })).status, 401);
  t.equal((await browser.call('POST', `${base}/get-totp-uri`, { password: 'Wrong1234' })).status, 400);
  const code = await codeOf(api, email);
  const elsewhere = { 'x-forwarded-for': '198.51.100.7' };
  const reply = await waiting.call('POST', `${base}/verify-totp`, { code }, elsewhere);
  t.match(reply, { status: 429, json: { code: 'too_many_requests' }, headers: { 'x-retry-after': /^\d+$/ } });
  t.equal((await older({ totpCode: code })).status, 429);
  t.equal((await older({ backupCode: backupCodes[0] ?? '' })).status, 429);
  t.equal((await browser.call('POST', `${base}/disable`, { password })).status, 429);
  api.advance(60_001);
  t.equal((await verify(await held(api), await codeOf(api, email))).status, 200);
});

t.test('a new password does not skip the second factor', async (t) => {
  const api = await startApi(t);
  await enabled(api);
  const waiting = await held(api);
  await api.client('POST', '/api/auth/request-password-reset', { email });
  const { body } = await api.context.db.selectFrom('mailOutbox').select('body').executeTakeFirstOrThrow();
  const token = /token=([\w-]+)/.exec(body)?.[1];
  const reset = await api.client('POST', '/api/auth/reset-password', { token, newPassword: 'Password2' });
  t.equal(reset.status, 200);
  t.equal(reset.headers['set-cookie'], undefined);
  t.equal(
    (await verify(waiting, await codeOf(api, email))).status,
    401,
    'the login that began with the old password has ended',
  );
  const browser = await held(api, { password: 'Password2' });
  t.equal((await verify(browser, await codeOf(api, email))).status, 200);
});

t.test('the audit log has the steps, and no code', async (t) => {
  const api = await startApi(t, { env: { AUDIT_LOG_ENABLED: '1' } });
  const { backupCodes } = await enabled(api);
  await api.context.db.deleteFrom('auditEvents').execute();
  const browser = await held(api);
  await verify(browser, await wrongCodeOf(api, email));
  const code = await codeOf(api, email);
  await verify(browser, code);
  const events = await api.context.db
    .selectFrom('auditEvents')
    .select(['action', 'status', 'changes'])
    .execute();
  t.strictSame(events.map(({ action, status }) => `${action} ${status}`).sort(), [
    'authenticationAttempted failure',
    'authenticationSucceeded success',
    'twoFactorRequired success',
    'twoFactorVerified success',
  ]);
  t.match(JSON.stringify(events), /invalid_totp_code/);
  for (const secret of [code, ...backupCodes, hashToken(code)])
    t.notOk(JSON.stringify(events).includes(secret));
});

t.test('an eleventh waiting login ends the oldest', async (t) => {
  const api = await startApi(t);
  await enabled(api);
  const browsers: Browser[] = [];
  for (let i = 0; i < 11; i++) {
    api.advance(60_000 / 2);
    browsers.push(await held(api));
  }
  const waiting = await api.context.db.selectFrom('accountTokens').select('purpose').execute();
  t.equal(waiting.filter(({ purpose }) => purpose === 'twoFactor').length, 10);
  const [first, second] = browsers;
  if (first === undefined || second === undefined) throw new Error('no logins');
  t.match(await verify(first, await codeOf(api, email)), { status: 401 });
  t.match(await verify(second, await codeOf(api, email)), { status: 200 });
});
