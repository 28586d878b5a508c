/**
 * An unknown user and a wrong password cost the same: one argon2id of the same cost, which is counted. Times are
 * compared in pairs of neighbours, so that other work on this machine affects both. They are reported. The only
 * assertion about them is robust: neither side wins nearly always.
 */
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

t.test('unknown accounts and wrong passwords take the same time, compared in pairs', async (t) => {
  const api = await startApi(t, { parts: ({ random }) => ({ passwords: createPasswords(random) }) });
  const browser = openBrowser(api);
  await browser.logIn('nobody@example.com', 'Wrong1234');
  const timed = async (email: string): Promise<number> => {
    const start = performance.now();
    await browser.logIn(email, 'Wrong1234');
    return performance.now() - start;
  };
  const unknown: number[] = [];
  const wrong: number[] = [];
  const PAIRS = 60;
  for (let i = 0; i < PAIRS; i++) {
    // The order alternates, so that neither always comes first.
    if (i % 2 === 0) unknown.push(await timed('nobody@example.com'));
    wrong.push(await timed(known));
    if (i % 2 === 1) unknown.push(await timed('nobody@example.com'));
  }
  const median = (times: readonly number[]): number =>
    [...times].sort((a, b) => a - b)[times.length >> 1] ?? 0;
  const wins = unknown.filter((time, i) => time < (wrong[i] ?? 0)).length;
  t.comment(
    `medians: unknown user ${median(unknown).toFixed(2)} ms, wrong password ${median(wrong).toFixed(2)} ms; unknown was faster in ${wins} of ${PAIRS}`,
  );
  // By chance alone this fails once in ten million runs (a fair coin, 60 throws, beyond 5.4 standard deviations).
  t.ok(wins > 9 && wins < PAIRS - 9, `${wins} of ${PAIRS}`);
});
