/** What a process keeps for a time is not kept longer by as much as the clock was set back. */
import t from 'tap';
import { createStateCache, toCachedState } from '#api/cache/state-cache.ts';
import { createMemoryCounters } from '#api/limits/counters.ts';
import { onceAMinute } from '#shared/once-a-minute.ts';
import { testClock } from '#test/support/clock.ts';

const HOUR = 3_600_000;

t.test('what a process keeps in memory', async (t) => {
  const { now, advance } = testClock();
  const counters = createMemoryCounters(now);
  await counters.use('x', 'k', 60);
  const cache = createStateCache(now);
  let built = 0;
  const build = async () => {
    built += 1;
    return toCachedState('{}');
  };
  await cache.get('w', build);
  let logged = 0;
  const log = onceAMinute(now, () => {
    logged += 1;
  });
  log();
  advance(-HOUR);
  t.equal((await counters.use('x', 'k', 60)).used, 1, 'a window begins');
  await cache.get('w', build);
  t.equal(built, 2, 'a state is built again');
  log();
  t.equal(logged, 2, 'a message is logged');
});
