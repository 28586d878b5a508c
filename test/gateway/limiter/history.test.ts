/** Tests which days make a client a regular: in memory and in the script of Redis, which must never differ. */
import { deepEqual } from 'node:assert/strict';
import { join } from 'node:path';
import t from 'tap';
import { daysOf, type History, regularUntil, visitedOn } from '#gateway/limiter/history.ts';
import { VISIT } from '#gateway/limiter/visits.ts';
import { DAY_MS, HISTORY_DAYS, type VisitRule } from '#gateway/policy/groups.ts';
import { arrowCases } from '#test/support/arrow-cases.ts';
import { fc } from '#test/support/fast-check.ts';
import { startRedis } from '#test/support/redis.ts';
import { storeAt } from '#test/support/store.ts';

const rule = (visits: number, days: number): VisitRule => ({ visits, days, newPerDay: 100 });

function after(days: readonly number[]): History | null {
  let history: History | null = null;
  for (const day of days) history = visitedOn(day, history);
  return history;
}

for (const { heading, cases } of arrowCases(join(import.meta.dirname, 'history.md')))
  t.test(heading, async (t) => {
    for (const [asked = '', expected] of cases) {
      const [days = '', visits = 2, within = 30] = asked.split(/ visits | of /);
      const history = after(days.split(' ').map(Number));
      const ends = history === null ? null : regularUntil(history, rule(Number(visits), Number(within)));
      t.equal(String(ends ?? 'never'), expected, asked);
    }
  });

t.test('the days of a history are told in their order', async (t) => {
  const history = after([100, 103, 104, 120]);
  t.strictSame(history === null ? [] : daysOf(history), [100, 103, 104, 120]);
  const oldest = after([100, 99 + HISTORY_DAYS]);
  t.strictSame(oldest === null ? [] : daysOf(oldest), [100, 99 + HISTORY_DAYS]);
});

t.test('Redis and memory agree about random days', async (t) => {
  const redis = await startRedis(t);
  const store = storeAt(t, redis.url);
  await store.connect();
  // Days to come, so that no key expires during the test.
  const today = Math.floor(Date.now() / DAY_MS);
  let run = 0;
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.integer({ min: 0, max: 50 }), { minLength: 1, maxLength: 8 }),
      fc.integer({ min: 2, max: 4 }),
      fc.integer({ min: 4, max: HISTORY_DAYS }),
      async (days, visits, within) => {
        const keys = [`fg:{${++run}}:days`, `fg:{${run}}:proven`] as const;
        let history: History | null = null;
        for (const day of days) {
          history = visitedOn(today + 1 + day, history);
          const ends = regularUntil(history, rule(visits, within));
          const args = [visits, within, 1, (today + 1 + day) * 2 ** HISTORY_DAYS + 1].map(String);
          const packed = history.last * 2 ** HISTORY_DAYS + history.days;
          deepEqual(await store.run(VISIT, keys, args), [packed]);
          deepEqual(Number(await redis.client.get(keys[0])), packed);
          const endsOf = async (key: string): Promise<number> =>
            Math.round((Number(await redis.client.pexpiretime(key)) / DAY_MS) * 100) / 100;
          deepEqual(await endsOf(keys[0]), history.last + within);
          if (ends === null) deepEqual(await redis.client.exists(keys[1]), 0);
          else deepEqual(await endsOf(keys[1]), ends);
        }
      },
    ),
    { numRuns: 200 },
  );
  t.ok(run >= 200, `${run} runs`);
});

t.test('two histories of a client are joined, whichever comes first', async (t) => {
  const redis = await startRedis(t);
  const store = storeAt(t, redis.url);
  await store.connect();
  const today = Math.floor(Date.now() / DAY_MS);
  const packed = ({ last, days }: History): number => last * 2 ** HISTORY_DAYS + days;
  const some = fc.uniqueArray(fc.integer({ min: 1, max: HISTORY_DAYS }), { minLength: 1, maxLength: 6 });
  let run = 0;
  await fc.assert(
    fc.asyncProperty(some, some, async (one, other) => {
      const keys = [`fg:{${++run}}:days`, `fg:{${run}}:proven`];
      const ofDays = (days: readonly number[]): number => {
        const history = after(days.toSorted((a, b) => a - b).map((day) => today + day));
        return history === null ? 0 : packed(history);
      };
      for (const days of [one, other]) await store.run(VISIT, keys, ['2', '30', '1', String(ofDays(days))]);
      deepEqual(Number(await redis.client.get(keys[0] ?? '')), ofDays([...one, ...other]));
    }),
    { numRuns: 200 },
  );
  t.ok(run >= 200, `${run} runs`);
});
