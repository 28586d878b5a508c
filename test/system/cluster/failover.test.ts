/** A failover in the middle of a window: counts are kept before, during and after it. */
import t from 'tap';
import { startLimiter } from '#test/support/guarded-limiter.ts';
import { startWatchedRedis } from '#test/support/redis-sentinel.ts';
import { burst, chargeOf, part, policy } from '#test/support/spend.ts';
import { until } from '#test/support/until.ts';
import { insideLongWindow, LONG_WINDOW_SECONDS } from '#test/support/window.ts';

t.test('the primary is killed: the window admits exactly its limit', async (t) => {
  await insideLongWindow();
  const redis = await startWatchedRedis(t);
  const limiter = await startLimiter(t, redis.url, { budgetMs: 500 });
  const charge = () => chargeOf(part(policy('p', 200, LONG_WINDOW_SECONDS), 'somebody'));
  t.equal(await burst(limiter, charge(), 50), 50);
  // Redis loses a write that the replica does not have when a primary dies.
  t.ok(Number(await redis.first.client.wait(1, 10_000)) >= 1);
  await redis.watchClosely();
  await redis.first.kill();
  let admitted = 50;
  for (let i = 0; i < 50; i++) admitted += await burst(limiter, charge(), 1);
  t.equal(admitted, 100, 'decided without the store meanwhile');
  await redis.untilPrimaryIs(redis.second);
  await until(() => limiter.stats().available);
  admitted += await burst(limiter, charge(), 300);
  t.equal(admitted, 200);
});
