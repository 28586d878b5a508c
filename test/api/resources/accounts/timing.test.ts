/** An unknown user and a wrong password cost the same: one argon2id of the same cost, which is counted. */
import t from 'tap';
import { createPasswords } from '#api/auth/password.ts';
import { startApi } from '#test/support/api-app.ts';
import { openBrowser } from '#test/support/login.ts';

const known = 'owner@example.com';

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
  await api.context.db.updateTable('users').set({ isActive: 0, emailVerified: null }).execute();
  t.strictSame(await workOf(known), wrongPassword, 'a user who is inactive and unverified');

  derived.length = 0;
  const signUp = (email: string) =>
    api.client('POST', '/api/auth/signup', { name: 'Me', email, password: 'Password1' });
  const [first, again] = [await signUp(known), await signUp('new@example.com')];
  t.equal(derived.length, 2, 'sign-up with a taken address hashes the password too');
  t.equal(first.text, again.text, 'both sign-ups get the same reply');
});
