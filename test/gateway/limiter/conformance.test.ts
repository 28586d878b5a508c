/** Runs the conformance suite on memory and on one Redis. test/system/cluster runs it on sentinels and on a Cluster. */
import t from 'tap';
import { untilWindowEnd } from '#gateway/algorithms/algorithm.ts';
import { shareOf } from '#gateway/limiter/limiter.ts';
import { processClock } from '#test/support/guarded-limiter.ts';
import { startRedis } from '#test/support/redis.ts';
import {
  burst,
  chargeOf,
  identity,
  memoryLimiter,
  part,
  partForNewcomers,
  policy,
  VALUES,
  withValue,
} from '#test/support/spend.ts';
import { insideLongWindow, LONG_WINDOW_SECONDS } from '#test/support/window.ts';
import { forEachAlgorithm, storeAt } from './conformance.ts';

t.test('memory', async (t) => {
  // Redis has its own clock, so both stores are tested on the real one.
  forEachAlgorithm(t, async () => memoryLimiter({ clock: processClock }));
});

t.test('Redis', async (t) => {
  const redis = await startRedis(t);
  forEachAlgorithm(t, storeAt(redis.url));
});

t.test('a newcomer with a new value is charged for both, or for none', async (t) => {
  const redis = await startRedis(t);
  const stores = { memory: async () => memoryLimiter({ clock: processClock }), Redis: storeAt(redis.url) };
  for (const [store, limiterOf] of Object.entries(stores))
    for (const algorithm of ['fixed-window', 'sliding-window', 'token-bucket'] as const)
      await t.test(`${store}, ${algorithm}`, async (t) => {
        await insideLongWindow();
        const limiter = await limiterOf(t);
        const named = (name: string): string => `${algorithm.slice(0, 3)}-${name}`;
        const values = policy('accounts', 2, LONG_WINDOW_SECONDS, VALUES);
        const pass = async (who: string, asked: string, of = 'site'): Promise<string> => {
          const newcomers = policy(`${of}.newcomers`, 4, LONG_WINDOW_SECONDS, { algorithm });
          const everyone = partForNewcomers(newcomers, named('everyone'), [named(who)]);
          const passed: string[] = [];
          for (const value of asked) {
            const charge = chargeOf(withValue(part(values, named(who)), value), everyone);
            if ((await burst(limiter, charge, 1)) === 1) passed.push(value);
          }
          return passed.join('');
        };
        t.equal(await pass('one', 'aabc'), 'aab', 'a third value is denied');
        t.equal(await pass('two', 'xy'), 'x', 'what was denied for its value was not charged to newcomers');
        limiter.prove(identity(named('two')));
        t.equal(await pass('two', 'zyz'), 'zz', 'what was denied to a newcomer was not charged as a value');
        t.equal(await pass('three', 'a'), '', 'a regular makes no room for newcomers');

        const crowd = ['c1', 'c2', 'c3', 'c4', 'c5', 'c6'];
        const first = await Promise.all(crowd.map((who) => pass(who, 'a', 'other')));
        t.equal(first.join(''), 'aaaa', 'at once too');
        for (const who of crowd) limiter.prove(identity(named(who)));
        t.strictSame(
          await Promise.all(crowd.map((who) => pass(who, 'bcd', 'other'))),
          first.map((passed) => (passed === 'a' ? 'b' : 'bc')),
          'each has used as many values as passed',
        );
      });
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
