/**
 * The whole life of an account, as the README shows it: with curl, against the process, with mails from a real server.
 */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import t from 'tap';
import { openTestDatabase, sharedDatabase } from '#test/support/database.ts';
import { freePort } from '#test/support/ports.ts';
import { start } from '#test/support/process.ts';
import { inLink, startMailServer } from '#test/support/smtp.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';
import { until } from '#test/support/until.ts';

const run = promisify(execFile);

/** The README's commands, each with a name. `set -u` and `curl -f` end them on a failure. */
const setUp = `
JAR=$FOLDER/cookies.txt
csrf() { curl -s -b $JAR -c $JAR $BASE/api/auth/csrf | sed 's/.*"csrfToken":"\\([^"]*\\)".*/\\1/'; }
`;
const commands = {
  signup: `curl -s $BASE/api/auth/signup -d '{"name":"Ada","email":"ada@example.com","password":"Password1"}'`,
  verify: `curl -s -b $JAR -c $JAR $BASE/api/auth/callback/token -d json=true -d "csrfToken=$(csrf)" -d "token=$TOKEN" -d password=Password1`,
  login: `curl -s -b $JAR -c $JAR $BASE/api/auth/callback/credentials -d json=true -d "csrfToken=$(csrf)" --data-urlencode email=ada@example.com --data-urlencode password=Password1`,
  session: `curl -s -b $JAR $BASE/api/auth/session`,
  createKey: `curl -s -b $JAR $BASE/api/v1/api-keys -d '{"label":"My key"}'`,
  useKey: `curl -s -H "x-api-key: $KEY" $BASE/api/v1/management/me`,
  listKeys: `curl -s -b $JAR $BASE/api/v1/api-keys`,
  revokeKey: `curl -s -b $JAR -X DELETE $BASE/api/v1/api-keys/$ID`,
  manage: `curl -s -b $JAR $BASE/api/v1/management/surveys`,
  forgot: `curl -s $BASE/api/auth/forgot-password -d '{"email":"ada@example.com"}'`,
  reset: `curl -s $BASE/api/auth/reset-password -d '{"token":"'$TOKEN'","password":"Password2"}'`,
  signout: `curl -s -b $JAR -c $JAR $BASE/api/auth/signout -d json=true -d "csrfToken=$(csrf)"`,
} as const;

t.test('signup, verify, login, create a key, use it, revoke it', async (t) => {
  const folder = temporaryFolder(t);
  const mails = await startMailServer(t);
  const port = await freePort();
  const base = `http://127.0.0.1:${port}`;
  const api = start(['api/main.ts'], {
    API_PORT: String(port),
    DATABASE_URL: await sharedDatabase(t),
    PUBLIC_URL: base,
    SIGNUP_ENABLED: '1',
    SMTP_URL: mails.url,
    MAIL_FROM: 'Floodgate <feedback@example.com>',
  });
  t.teardown(() => api.stop('SIGKILL'));
  await api.until(/environment\n/);

  const sh = async (name: keyof typeof commands, env: Record<string, string> = {}) => {
    const { stdout } = await run('bash', ['-euc', `${setUp}${commands[name]}`], {
      env: { PATH: process.env.PATH ?? '', FOLDER: folder, BASE: base, TOKEN: '', KEY: '', ID: '', ...env },
    });
    return JSON.parse(stdout);
  };

  t.match(await sh('signup'), { data: { success: String } });
  const mail = await mails.mail(1);
  t.strictSame(mail.to, ['ada@example.com']);
  t.equal(mail.from, 'feedback@example.com');
  t.equal(mail.headers.subject, 'Confirm your e-mail address');
  t.match(mail.headers['message-id'], /^<c[0-9a-z]{24}@example\.com>$/);
  t.match(mail.text, `${base}/auth/verify?token=`);
  t.match(
    await sh('login'),
    { url: /Email%20Verification%20is%20Pending/ },
    'no login before the address is verified',
  );
  t.strictSame(await sh('session'), {});

  t.strictSame(await sh('verify', { TOKEN: inLink(mail, 'token') }), { url: base });
  t.match(await sh('session'), { user: { email: 'ada@example.com' } }, 'the link logs in');
  t.match(await sh('verify', { TOKEN: inLink(mail, 'token') }), { url: /already%20verified/ });
  await sh('signout');
  t.strictSame(await sh('session'), {});

  t.strictSame(await sh('login'), { url: base });
  t.match(await sh('session'), { user: { name: 'Ada' }, expires: String });
  t.strictSame(await sh('manage'), { data: [] }, 'the session can use the management API');

  const { data: key } = await sh('createKey');
  t.match(key, {
    label: 'My key',
    apiKey: /^fbk_[\w-]{43}$/,
    workspacePermissions: [{ permission: 'manage' }],
  });
  t.match(await sh('useKey', { KEY: key.apiKey }), { workspace: { name: 'My workspace' } });
  const { data: keys } = await sh('listKeys');
  t.equal(keys.length, 1);
  t.notOk('apiKey' in keys[0], 'the key is shown once');
  t.equal(keys[0].lastUsedAt === null, false);
  t.match(await sh('revokeKey', { ID: key.id }), { data: { id: key.id } });
  t.match(await sh('useKey', { KEY: key.apiKey }), { code: 'not_authenticated' });

  t.match(await sh('forgot'), { data: { success: String } });
  const resetMail = await mails.mail(2);
  t.match(await sh('reset', { TOKEN: inLink(resetMail, 'token') }), { data: { success: String } });
  t.strictSame(await sh('session'), {}, 'every session has ended');
  t.match(await sh('login'), { url: /Invalid%20credentials/ }, 'the old password is invalid');

  t.equal(await api.stop(), 0);
  t.notMatch(
    api.output(),
    /ada@example\.com|Password1|Password2|token=/,
    'the log has no secret and no address',
  );
  t.match(api.output(), /"a mail was sent"/);
});

t.test(
  'a mail accepted while the mail server is down is sent later, even after a kill -9 of the API',
  async (t) => {
    const smtpPort = await freePort();
    const databaseUrl = await sharedDatabase(t);
    const env = {
      API_PORT: '0',
      DATABASE_URL: databaseUrl,
      BOOTSTRAP_EMAIL: 'me@example.com',
    };
    const first = start(['api/main.ts'], env);
    t.teardown(() => first.stop('SIGKILL'));
    const [, address] = await first.until(/API ready on (\S+)/);
    const forgot = await fetch(`${address}/api/auth/forgot-password`, {
      method: 'POST',
      body: JSON.stringify({ email: 'me@example.com' }),
    });
    t.equal(forgot.status, 200);
    await first.until(/a mail waits in the table mailOutbox/);
    // The transaction that accepts the mail begins after the reply, and ends after the log line.
    const db = openTestDatabase(databaseUrl);
    const mailsWaiting = () => db.selectFrom('mailOutbox').select('id').execute();
    await until(async () => (await mailsWaiting()).length === 1, 'for the mail in the table', first);
    await db.destroy();
    await first.stop('SIGKILL');

    const mails = await startMailServer(t, smtpPort);
    const second = start(['api/main.ts'], { ...env, SMTP_URL: mails.url });
    t.teardown(() => second.stop('SIGKILL'));
    t.equal((await mails.mail(1)).headers.subject, 'Choose a new password');
    t.equal(await second.stop(), 0);
  },
);

t.test('REDIS_URL leads nowhere: the API starts, serves, and logs it', async (t) => {
  const api = start(['api/main.ts'], {
    API_PORT: '0',
    DATABASE_URL: 'file::memory:',
    REDIS_URL: `redis://127.0.0.1:${await freePort()}`,
  });
  t.teardown(() => api.stop('SIGKILL'));
  const [, address] = await api.until(/API ready on (\S+)/);
  await api.until(/REDIS_URL does not answer/);
  t.equal((await fetch(`${address}/auth/login`)).status, 200);
  t.equal((await fetch(`${address}/api/v2/client/unknown/environment`)).status, 404);
  t.equal(await api.stop(), 0);
});
