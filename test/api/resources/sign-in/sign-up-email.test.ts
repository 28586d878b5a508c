/** POST /api/auth/sign-up/email. */
import t from 'tap';
import { startApi, type TestApi } from '#test/support/api-app.ts';

const url = '/api/auth/sign-up/email';
const me = { name: 'Zoe', email: 'zoe@example.com', password: 'Password1' };

const mails = ({ context }: TestApi) =>
  context.db.selectFrom('mailOutbox').select(['kind', 'recipient', 'body']).orderBy('kind').execute();

t.test('200: no session, and a mail with the link', async (t) => {
  const api = await startApi(t);
  const reply = await api.client('POST', url, {
    ...me,
    email: ' Zoe@example.com',
    callbackURL: '/account?a=b',
  });
  t.match(reply, {
    status: 200,
    json: { token: null, user: { name: 'Zoe', email: me.email, emailVerified: false } },
  });
  t.equal(reply.headers['set-cookie'], undefined);
  const { id } = await api.context.db
    .selectFrom('users')
    .select('id')
    .where('email', '=', me.email)
    .executeTakeFirstOrThrow();
  t.equal(reply.json.user.id, id);
  const [mail] = await mails(api);
  t.match(mail, { kind: 'verifyEmail', recipient: me.email });
  t.match(mail?.body, 'callbackUrl=https%3A%2F%2Ffeedback.example.com%2Faccount%3Fa%3Db');
});

t.test('200: the same reply for a taken address, and a mail to its owner', async (t) => {
  const api = await startApi(t);
  const fresh = await api.client('POST', url, me);
  const known = await api.client('POST', url, { ...me, email: 'owner@example.com' });
  const again = await api.client('POST', url, me);
  const shape = ({ json }: typeof fresh) => ({
    ...json,
    user: { ...json.user, id: json.user.id.length, email: '' },
  });
  t.strictSame(shape(known), shape(fresh));
  t.strictSame(shape(again), shape(fresh));
  t.equal(
    new Set([fresh, known, again].map(({ json }) => json.user.id)).size,
    3,
    'ids do not reveal an account',
  );
  t.match(
    (await mails(api)).map(({ kind, recipient }) => `${kind} ${recipient}`),
    ['accountExists owner@example.com', 'verifyEmail zoe@example.com', 'verifyEmail zoe@example.com'],
  );
});

t.test('400: each rule of passwords, names and addresses', async (t) => {
  const api = await startApi(t);
  const cases: readonly (readonly [object, string, RegExp])[] = [
    [{ password: 'Aa1' }, 'PASSWORD_TOO_SHORT', /^Password too short$/],
    [{ password: 'Aa1'.repeat(50) }, 'PASSWORD_TOO_LONG', /^Password too long$/],
    [{ password: 'password1' }, 'VALIDATION_ERROR', /^\[body.password\] .*upper-case/],
    [{ password: 'Passwordx' }, 'VALIDATION_ERROR', /digit/],
    [{ email: 'nothing' }, 'INVALID_EMAIL', /^Invalid email$/],
    [{ name: '   ' }, 'VALIDATION_ERROR', /^\[body.name\]/],
    [{ name: undefined }, 'VALIDATION_ERROR', /^\[body.name\] Required$/],
    [{ password: 1 }, 'VALIDATION_ERROR', /^\[body.password\] must be string$/],
  ];
  for (const [change, code, message] of cases) {
    const reply = await api.client('POST', url, { ...me, ...change });
    t.match(reply, { status: 400, json: { code, message } }, JSON.stringify(change));
  }
  t.equal((await mails(api)).length, 0);
});

t.test('400 while sign-up is closed, 403 for a callbackURL elsewhere', async (t) => {
  const closed = await startApi(t, { env: { SIGNUP_ENABLED: '' } });
  const reply = await closed.client('POST', url, me);
  t.match(reply, { status: 400, json: { code: 'EMAIL_PASSWORD_SIGN_UP_DISABLED', message: /invite/ } });
  const api = await startApi(t);
  const elsewhere = await api.client('POST', url, { ...me, callbackURL: 'https://evil.example' });
  t.match(elsewhere, { status: 403, json: { code: 'INVALID_CALLBACK_URL' } });
  t.equal((await mails(api)).length, 0);
});
