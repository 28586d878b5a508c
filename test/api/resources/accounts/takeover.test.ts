/** An attacker who signs up with another person's address gets no account, and does not lock the owner out. */
import t from 'tap';
import { publicUrl, type Reply, startApi, type TestApi } from '#test/support/api-app.ts';
import { column } from '#test/support/column.ts';
import { openBrowser } from '#test/support/login.ts';
import { mailsOf } from '#test/support/mails.ts';

const owner = { name: 'Zoe', email: 'zoe@example.com', password: 'Password1' };
const stranger = { ...owner, name: 'Stranger', password: 'Strangers1' };

async function signUp(api: TestApi, account: typeof owner): Promise<void> {
  const reply = await api.client('POST', '/api/auth/signup', account);
  if (reply.status !== 200) throw new Error(reply.text);
  // The clock moves, so mails have an order.
  api.advance(1);
}

/** Returns the tokens of the verification mails, oldest first. */
async function tokensOf(api: TestApi): Promise<readonly [string, ...string[]]> {
  const [first = '', ...others] = column(await mailsOf(api, 'verifyEmail'), 'token');
  return [first, ...others];
}

const verify = (api: TestApi, fields: Readonly<Record<string, string>>): Promise<Reply> =>
  openBrowser(api).form('/api/auth/callback/token', fields);
const userOf = (api: TestApi) =>
  api.context.db
    .selectFrom('users')
    .select(['name', 'emailVerified', 'updatedAt', 'passwordHash'])
    .where('email', '=', owner.email)
    .executeTakeFirstOrThrow();

async function admits(api: TestApi, password: string): Promise<boolean> {
  return (await openBrowser(api).logIn(owner.email, password)).json.url === publicUrl;
}

for (const [who, accounts] of [
  ['first', [stranger, owner]],
  ['later', [owner, stranger]],
] as const) {
  t.test(`an attacker signs up ${who}: the account has the password that came with the link`, async (t) => {
    const api = await startApi(t);
    await signUp(api, accounts[0]);
    const before = await userOf(api);
    await signUp(api, accounts[1]);
    t.strictSame(await userOf(api), before, 'the second sign-up does not change the account');
    const [first, second = ''] = await tokensOf(api);

    const bare = await verify(api, { token: first });
    t.equal(bare.status, 401);
    t.match(decodeURIComponent(bare.json.url), /error=This link needs a password/);
    const weak = await verify(api, { token: first, password: 'weak' });
    t.match(weak, { status: 400, json: { details: { password: /8 to 128 characters/ } } });
    t.equal((await userOf(api)).emailVerified, null);

    const { name, password } = owner;
    t.strictSame((await verify(api, { token: first, password, name })).json, { url: publicUrl });
    t.match(await userOf(api), { name, emailVerified: String });
    t.ok(await admits(api, password));
    t.notOk(await admits(api, stranger.password));
    const other = await verify(api, { token: second, password: stranger.password });
    t.match(other.json.url, /token%20is%20invalid/, 'the other link is invalid');
    const again = await verify(api, { token: first, password: stranger.password });
    t.match(again.json.url, /already%20verified/, 'a used link sets no password');
    t.ok(await admits(api, password));
  });
}

t.test('an attacker used up the mails: any of their links lets the owner in', async (t) => {
  const api = await startApi(t);
  for (let i = 0; i < 5; i += 1) await signUp(api, stranger);
  await signUp(api, owner);
  const tokens = await tokensOf(api);
  t.equal(tokens.length, 5, 'no further mail is sent');
  const reply = await verify(api, { token: tokens[2] ?? '', password: owner.password });
  t.strictSame(reply.json, { url: publicUrl });
  t.ok(await admits(api, owner.password));
  t.notOk(await admits(api, stranger.password));
});

t.test('links that were requested again, by address or by link, need a password too', async (t) => {
  const api = await startApi(t);
  await signUp(api, stranger);
  const [first] = await tokensOf(api);
  await api.client('POST', '/api/auth/resend-verification', { email: owner.email });
  api.advance(1);
  await api.client('POST', '/api/auth/resend-verification', { token: first });
  const [, byAddress = '', byToken = ''] = await tokensOf(api);
  for (const token of [byAddress, byToken]) t.equal((await verify(api, { token })).status, 401);
  t.equal((await userOf(api)).emailVerified, null);
  t.strictSame((await verify(api, { token: byToken, password: owner.password })).json, { url: publicUrl });
});
