/**
 * Time reveals nothing about accounts: a login derives one key whoever it names, and what takes longer for a known address
 * runs after the reply.
 */
import type { KyselyPlugin } from 'kysely';
import t from 'tap';
import { createPasswords } from '#api/auth/password.ts';
import { startApi } from '#test/support/api-app.ts';
import { openBrowser, signUp } from '#test/support/login.ts';
import { mailsOf } from '#test/support/mails.ts';

const known = 'owner@example.com';
const me = { name: 'Me', email: 'new@example.com', password: 'Password1' };

t.test('each login derives one key, for unknown accounts too', async (t) => {
  const derived: { readonly password: string; readonly cost: string }[] = [];
  const api = await startApi(t, {
    parts: ({ random }) => ({
      passwords: createPasswords(random, async (password, _salt, cost) => {
        derived.push({ password, cost: JSON.stringify(cost) });
        return Buffer.alloc(32);
      }),
    }),
  });
  const workOf = async (email: string): Promise<unknown> => {
    derived.length = 0;
    await openBrowser(api).logIn(email, 'Wrong1234');
    return [...derived];
  };
  const wrongPassword = await workOf(known);
  t.strictSame(wrongPassword, [
    { password: 'Wrong1234', cost: '{"memory":19456,"passes":2,"parallelism":1}' },
  ]);
  t.strictSame(await workOf('nobody@example.com'), wrongPassword, 'an unknown user');
  t.strictSame(await workOf('not an address'), wrongPassword, 'a text that is no address');
  await api.context.db.updateTable('users').set({ passwordHash: null }).execute();
  t.strictSame(await workOf(known), wrongPassword, 'a user without a password');
  await api.context.db.updateTable('users').set({ emailVerified: null }).execute();
  t.strictSame(await workOf(known), wrongPassword, 'a user who is unverified');

  derived.length = 0;
  await signUp(api, { ...me, email: known });
  await signUp(api, me);
  t.equal(derived.length, 2, 'sign-up with a taken address hashes the password too');
});

for (const { path, kind, address } of [
  { path: '/auth/forgot-password', kind: 'resetPassword', address: known },
  { path: '/auth/verification-requested', kind: 'verifyEmail', address: me.email },
] as const) {
  t.test(`${path}: the same work before the reply, for known and unknown addresses`, async (t) => {
    const queries: string[] = [];
    const noting: KyselyPlugin = {
      transformQuery({ node }) {
        queries.push(node.kind);
        return node;
      },
      transformResult: async ({ result }) => result,
    };
    const api = await startApi(t, { parts: ({ db }) => ({ db: db.withPlugin(noting) }) });
    await signUp(api, me);
    const browser = openBrowser(api);
    const { csrfToken } = (await browser.call('GET', '/api/auth/csrf')).json;
    const cookie = [...browser.cookies].map(([name, value]) => `${name}=${value}`).join('; ');
    const before = (await mailsOf(api, kind)).length;
    const held = Promise.withResolvers<void>();
    const begun = Promise.withResolvers<void>();
    api.context.background.add(async () => {
      begun.resolve();
      await held.promise;
    });
    await begun.promise;
    const answers = [];
    for (const email of [address, 'nobody@example.com']) {
      queries.length = 0;
      const payload = new URLSearchParams({ csrfToken, email }).toString();
      // The client of a test would wait for the work behind the reply.
      const reply = await api.app.inject({ method: 'POST', url: path, headers: { cookie }, payload });
      answers.push({ status: reply.statusCode, to: reply.headers.location, queries: [...queries] });
    }
    t.equal(answers[0]?.status, 303);
    t.strictSame(answers[0], answers[1]);
    t.equal((await mailsOf(api, kind)).length, before, 'the mail is written after the reply');
    held.resolve();
    await api.context.background.idle();
    t.equal((await mailsOf(api, kind)).length, before + 1);
  });
}
