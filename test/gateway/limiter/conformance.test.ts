/** Runs the conformance suite on memory and on one Redis. test/system/cluster runs it on sentinels and on a Cluster. */
import t from 'tap';
import { untilWindowEnd } from '#gateway/algorithms/algorithm.ts';
import { shareOf } from '#gateway/limiter/limiter.ts';
import { processClock } from '#test/support/guarded-limiter.ts';
import { startRedis } from '#test/support/redis.ts';
import { memoryLimiter, policy } from '#test/support/spend.ts';
import { forEachAlgorithm, storeAt } from './conformance.ts';

t.test('memory', async (t) => {
  // Redis has its own clock, so both stores are tested on the real one.
  forEachAlgorithm(t, async () => memoryLimiter({ clock: processClock }));
});

t.test('Redis', async (t) => {
  const redis = await startRedis(t);
  forEachAlgorithm(t, storeAt(redis.url));
});

t.test('arithmetic that all stores share', async (t) => {
  t.equal(untilWindowEnd(60_000, 60_000), 60_000, 'a window begins with its whole length');
  t.equal(untilWindowEnd(119_999, 60_000), 1);
  t.equal(shareOf(policy('p', 5, 60), 0, 1), 5);
  t.equal(shareOf(policy('p', 5, 60), 0, 2, 9), 5, 'the share of an override');
  for (const [limit, replicas] of [
    [5, 8],
    [100, 3],
    [1, 2],
    [7, 7],
  ] as const) {
    for (const index of [0, 1, 5]) {
      const shares = Array.from({ length: replicas }, (_, rank) =>
        shareOf(policy('p', limit, 60, { index }), rank, replicas),
      );
      t.equal(
        shares.reduce((sum, share) => sum + share, 0),
        limit,
        `${replicas} shares of ${limit}: ${shares}`,
      );
    }
  }
});
