/**
 * Tests sliding windows and token buckets in Redis: several processes, cached counters, and usage that is committed
 * after an outage.
 */
import t from 'tap';
import type { Algorithm, Policy } from '#gateway/policy/policy.ts';
import { startLimiter } from '#test/support/guarded-limiter.ts';
import { startRedis } from '#test/support/redis.ts';
import { burst, chargeOf, overridesFor, part, partWithLimit, policy, spend } from '#test/support/spend.ts';
import { until } from '#test/support/until.ts';
import { insideLongWindow, LONG_WINDOW_SECONDS } from '#test/support/window.ts';

const ALGORITHMS: readonly Algorithm[] = ['sliding-window', 'token-bucket'];

/** The window is so long that no usage comes back during a test. */
const long = (name: string, limit: number, algorithm: Algorithm, more: Partial<Policy> = {}): Policy =>
  policy(name, limit, LONG_WINDOW_SECONDS, { algorithm, ...more });

t.test('a bucket that refills sooner with another plan is not remembered as exhausted', async (t) => {
  const redis = await startRedis(t);
  const limiter = await startLimiter(t, redis.url);
  const p = policy('planned', 2, 3600, {
    algorithm: 'token-bucket',
    overrides: overridesFor('gold', 1_000_000_000),
  });
  const usual = chargeOf(part(p));
  t.equal(await burst(limiter, usual, 3), 2);
  t.equal(limiter.knownExhausted(usual), null, 'only the store knows whether the bucket is exhausted');
  const usedAt = Date.now();
  // The other plan's bucket empties completely in a millisecond.
  await until(() => Date.now() > usedAt + 1);
  t.equal(await burst(limiter, chargeOf(partWithLimit(p, 1_000_000_000)), 1), 1);
  t.equal(await burst(limiter, usual, 2), 1, 'one of the two returned units is left');

  const plain = part(policy('usual', 2, 3600, { algorithm: 'token-bucket' }));
  const other = part(policy('other', 2, 3600));
  await Promise.all([chargeOf(plain), chargeOf(plain, other)].map((charge) => spend(limiter, charge)));
  const [known] = limiter.knownExhausted(chargeOf(plain)) ?? [];
  t.not(known, undefined, 'without overrides it is remembered, and of one tick the last state');
  t.ok((known?.resetMs ?? 0) <= 1_800_000, `until one unit is back: ${known?.resetMs} ms`);
});

t.test('overwrites a value of another program under our key', async (t) => {
  const redis = await startRedis(t);
  const limiter = await startLimiter(t, redis.url);
  await insideLongWindow();
  for (const algorithm of ['fixed-window', 'calendar-window', ...ALGORITHMS] as const) {
    const one = part(long(`garbage-${algorithm}`, 3, algorithm), 'one');
    const numbers = ['-5', '5', '1e300', 'inf', 'nan', '99999999999999999999'];
    for (const garbage of [
      'hello',
      '-5 1',
      '1 2 3 4',
      '1e300 7 7',
      '99999999999999999999 1 1',
      '',
      ...numbers,
    ]) {
      await redis.client.set(one.key, garbage);
      t.equal(await burst(limiter, chargeOf(one), 1), 1, garbage);
    }
    await redis.client.del(one.key);
    await redis.client.lpush(one.key, 'a list');
    t.equal(await burst(limiter, chargeOf(one), 1), 1, 'a list counts as an empty counter');
    t.ok((await redis.client.pttl(one.key)) > 0, 'the counter expires');
  }
});
