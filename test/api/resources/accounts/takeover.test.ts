/** An attacker who signs up with another person's address gets no account, and does not lock the owner out. */
import t from 'tap';
import { createPasswords, deriveArgon2id } from '#api/auth/password.ts';
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

t.test('an attacker signs up later: their link does not verify without their password', async (t) => {
  const api = await startApi(t);
  await signUp(api, owner);
  const before = await userOf(api);
  await signUp(api, stranger);
  t.strictSame(await userOf(api), before, 'the second sign-up does not change the account');
  const [own, strangers = ''] = await tokensOf(api);

  const bare = await verify(api, { token: strangers });
  t.equal(bare.status, 401);
  t.match(decodeURIComponent(bare.json.url), /send .*password.* or .*newPassword/);
  t.equal((await verify(api, { token: strangers, password: owner.password })).status, 401);
  t.equal((await userOf(api)).emailVerified, null);

  t.strictSame((await verify(api, { token: own, password: owner.password })).json, { url: publicUrl });
  t.match(await userOf(api), { name: owner.name, emailVerified: String });
  t.ok(await admits(api, owner.password));
  t.notOk(await admits(api, stranger.password));
  const other = await verify(api, { token: strangers, password: stranger.password });
  t.match(other.json.url, /token%20is%20invalid/, 'the other link is invalid');
  const again = await verify(api, { token: own, password: owner.password });
  t.match(again.json.url, /already%20verified/);
});

t.test('an attacker signs up first: the link has the name and password of its own sign-up', async (t) => {
  const api = await startApi(t);
  await signUp(api, stranger);
  await signUp(api, owner);
  const [, own = ''] = await tokensOf(api);
  t.strictSame((await verify(api, { token: own, password: owner.password })).json, { url: publicUrl });
  t.match(await userOf(api), { name: owner.name });
  t.ok(await admits(api, owner.password));
  t.notOk(await admits(api, stranger.password));
});

t.test('an attacker used up the mails: any of their links lets the owner choose a password', async (t) => {
  const api = await startApi(t);
  for (let i = 0; i < 5; i += 1) await signUp(api, stranger);
  await signUp(api, owner);
  const tokens = await tokensOf(api);
  t.equal(tokens.length, 5, 'no further mail is sent');

  const weak = await verify(api, { token: tokens[0], newPassword: 'weak' });
  t.equal(weak.status, 400);
  t.match(weak.json.details, { newPassword: /8 to 128 characters/ });
  t.equal((await userOf(api)).emailVerified, null);
  const chosen = await verify(api, { token: tokens[2] ?? '', newPassword: 'Chosen123', name: 'Zoe Own' });
  t.strictSame(chosen.json, { url: publicUrl });
  t.match(await userOf(api), { name: 'Zoe Own', emailVerified: String });
  t.ok(await admits(api, 'Chosen123'));
  t.notOk(await admits(api, stranger.password));
  const late = await verify(api, { token: tokens[1] ?? '', newPassword: 'Later1234' });
  t.match(late.json.url, /token%20is%20invalid/);
  const twice = await verify(api, { token: tokens[2] ?? '', newPassword: 'Later1234' });
  t.match(twice.json.url, /already%20verified/, 'a used link sets no password');
  t.ok(await admits(api, 'Chosen123'));
});

t.test('a link accepts five wrong passwords, also at once; after that only a new password', async (t) => {
  let derived = 0;
  const api = await startApi(t, {
    parts: ({ random }) => ({
      passwords: createPasswords(random, (password, salt) => {
        derived += 1;
        return deriveArgon2id(password, salt, { memory: 64, passes: 1, parallelism: 1 });
      }),
    }),
  });
  await signUp(api, owner);
  const [token] = await tokensOf(api);
  derived = 0;
  const replies = await Promise.all(
    [1, 2, 3, 4, 5, 6, 7, 8].map((i) => verify(api, { token, password: `Wrong123${i}` })),
  );
  t.ok(replies.every(({ status }) => status === 401));
  t.equal(derived, 5);
  const right = await verify(api, { token, password: owner.password });
  t.equal(right.status, 401);
  t.match(decodeURIComponent(right.json.url), /Too many wrong passwords.*newPassword/);
  t.equal((await verify(api, { token, password: 'x'.repeat(129) })).status, 401);
  t.equal(derived, 5, 'further attempts derive no key');
  t.strictSame((await verify(api, { token, newPassword: 'Chosen123' })).json, { url: publicUrl });
  t.ok(await admits(api, 'Chosen123'));
});

t.test('links that were requested again need a password too', async (t) => {
  const api = await startApi(t);
  await signUp(api, stranger);
  await signUp(api, owner);
  const [, own = ''] = await tokensOf(api);
  await api.client('POST', '/api/auth/resend-verification', { email: owner.email });
  api.advance(1);
  await api.client('POST', '/api/auth/resend-verification', { token: own });
  const [, , byAddress = '', byToken = ''] = await tokensOf(api);
  t.equal((await verify(api, { token: byAddress })).status, 401);
  t.equal((await verify(api, { token: byToken })).status, 401);
  t.equal((await userOf(api)).emailVerified, null);
  const reply = await verify(api, { token: byToken, password: owner.password });
  t.strictSame(reply.json, { url: publicUrl }, 'leads to the callback of the first request');
  t.ok(await admits(api, owner.password));
});

t.test('a link without a password confirms none that somebody chose at a sign-up', async (t) => {
  const api = await startApi(t);
  await signUp(api, owner);
  await api.context.db.updateTable('accountTokens').set({ passwordHash: null, name: null }).execute();
  const [token] = await tokensOf(api);
  t.match((await verify(api, { token })).json.url, /error=This%20link%20needs%20a%20password/);
  t.notOk(await admits(api, owner.password));
  t.strictSame((await verify(api, { token, newPassword: 'Password9' })).json, { url: publicUrl });
  t.ok(await admits(api, 'Password9'));
});
