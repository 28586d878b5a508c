/** Different values without the store, and after it is back. */
import t from 'tap';
import type { GuardedLimiter } from '#gateway/limiter/outage.ts';
import { startLimiter, untilAway } from '#test/support/guarded-limiter.ts';
import { startRedis } from '#test/support/redis.ts';
import { chargeOf, part, policy, spend, VALUES, withValue } from '#test/support/spend.ts';
import { until } from '#test/support/until.ts';
import { insideLongWindow, LONG_WINDOW_SECONDS } from '#test/support/window.ts';

const ACCOUNTS = policy('p', 3, LONG_WINDOW_SECONDS, VALUES);

/** @returns whether each value passes, or `busy` if the store is needed and away */
async function pass(
  limiter: GuardedLimiter,
  values: string,
  who = 'somebody',
  of = ACCOUNTS,
): Promise<string> {
  const passed: string[] = [];
  for (const value of values) {
    const answer = await spend(limiter, chargeOf(withValue(part(of, who), value)));
    if (answer.kind === 'unavailable') passed.push('!');
    else if (answer.admitted) passed.push(value);
  }
  return passed.join('');
}

const untilBack = (limiter: GuardedLimiter): Promise<void> =>
  until(() => limiter.stats().available, 'the store is used again');

for (const how of ['silent', 'lost'] as const)
  t.test(`a store that is ${how} and comes back`, async (t) => {
    await insideLongWindow();
    const redis = await startRedis(t);
    const limiter = await startLimiter(t, redis.url, { budgetMs: 50 });
    t.equal(await pass(limiter, 'aba'), 'aba');
    if (how === 'silent') redis.freeze();
    else await redis.kill();
    t.equal(await pass(limiter, 'bcdacd'), 'bcac', 'the process goes on with the values that it knows');
    const strict = { ...ACCOUNTS, onStoreFailure: 'deny' } as const;
    await untilAway(limiter);
    t.equal(await pass(limiter, 'a', 'another', strict), '!', 'onStoreFailure: deny');
    t.equal(await pass(limiter, 'abcdef', 'a third', { ...ACCOUNTS, onStoreFailure: 'allow' }), 'abcdef');
    if (how === 'silent') redis.thaw();
    else await redis.restart();
    await untilBack(limiter);
    const other = await startLimiter(t, redis.url);
    t.equal(await pass(other, 'c'), 'c');
    // An emptied store has lost a and b. Only c is charged again.
    t.equal(await pass(other, 'defg'), how === 'silent' ? '' : 'de');
  });

t.test('each of two processes has a share of the new values', async (t) => {
  await insideLongWindow();
  const redis = await startRedis(t);
  const [one, two] = [await startLimiter(t, redis.url), await startLimiter(t, redis.url)];
  await until(() => one.stats().replicas === 2 && two.stats().replicas === 2, 'they know each other');
  const of = policy('shared', 4, LONG_WINDOW_SECONDS, VALUES);
  await redis.kill();
  await untilAway(one);
  await untilAway(two);
  t.strictSame([await pass(one, 'abca', 'x', of), await pass(two, 'aefa', 'x', of)], ['aba', 'aea']);
  await redis.restart();
  await untilBack(one);
  await untilBack(two);
  const third = await startLimiter(t, redis.url);
  t.equal(await pass(third, 'abecdabe', 'x', of), 'abecabe', 'a was used twice, and counts once');
});
