/**
 * Tests `inspect`, `explain --gateway` and `reset` on sliding windows, token buckets and concurrency, with and without
 * a store.
 */
import t, { type Test } from 'tap';
import type { Control } from '#gateway/bans/control.ts';
import { MemoryControl } from '#gateway/bans/memory-control.ts';
import { Rows } from '#gateway/bans/rows.ts';
import { StoreControl } from '#gateway/bans/store-control.ts';
import { KnownCounters } from '#gateway/limiter/known-counters.ts';
import type { Limiter } from '#gateway/limiter/limiter.ts';
import { inspect } from '#gateway/operate/admin/inspect.ts';
import { namedByIdentity } from '#gateway/operate/admin/subject.ts';
import { countersOf } from '#gateway/policy/counter.ts';
import { loadPolicies } from '#gateway/policy/file/load.ts';
import { processClock, startLimiter } from '#test/support/guarded-limiter.ts';
import { startRedis } from '#test/support/redis.ts';
import { burst, chargeOf, identity, memoryLimiter, part, withValue } from '#test/support/spend.ts';
import { accessTo } from '#test/support/store.ts';
import { until } from '#test/support/until.ts';

const set = loadPolicies(
  `version: 1
identifiers: { ip: { source: client-address } }
policies:
  - { name: sliding, route: GET /a, identifier: ip, limit: 5, window: 30d, algorithm: sliding-window }
  - { name: values, route: GET /c, identifier: ip, limit: 5, window: 30d, distinct: path }
  - { name: bucket, route: GET /b, identifier: ip, limit: 5, window: 30d, algorithm: token-bucket, burst: 3 }
`,
  'p.yaml',
);

async function same(t: Test, limiter: Limiter, control: Control): Promise<void> {
  const who = identity('inspected');
  for (const policy of set.policies)
    for (const value of ['/a', '/b']) {
      const bucket = part(policy, 'inspected');
      await burst(limiter, chargeOf(policy.distinct === null ? bucket : withValue(bucket, value)), 1);
    }
  const inspected = await inspect(namedByIdentity('digest', who), set, control);
  t.match(inspected.buckets, [
    { policy: 'sliding', used: 2, limit: 5 },
    { policy: 'values', used: 2, limit: 5 },
    { policy: 'bucket', used: 2, limit: 3 },
  ]);
  const counters = countersOf(set);
  for (const [value, isUsed] of [
    ['/b', true],
    ['/c', false],
  ] as const) {
    const { states, used } = await control.look(
      who,
      counters,
      undefined,
      counters.map(() => identity(value).digest),
    );
    t.equal(states[1]?.a, 2);
    t.strictSame(used, [false, isUsed, false], `${value} and explain`);
  }
  const [sliding, , bucket] = inspected.buckets.map(
    ({ resetAt }) => (Date.parse(resetAt) - processClock()) / 86_400_000,
  );
  t.ok(
    sliding !== undefined && sliding > 29.9 && sliding < 60,
    `${sliding} days to the end of the next window`,
  );
  t.ok(bucket !== undefined && bucket > 11.9 && bucket <= 12, `${bucket} days for two of five in 30`);
  t.equal(await control.reset(who, counters), 3);
  t.strictSame((await inspect(namedByIdentity('digest', who), set, control)).buckets, []);
  const { states } = await control.look(
    who,
    counters,
    undefined,
    counters.map(() => identity('/b').digest),
  );
  t.match(states[1], { a: 0, b: 0 }, 'a reset makes room for as many new values');
  t.equal((await control.look(who, [])).provenUntil, null);
  limiter.prove(who);
  await until(async () => (await control.look(who, [])).provenUntil !== null);
  const { provenUntil } = await control.look(who, []);
  const days = ((provenUntil ?? 0) - processClock()) / 86_400_000;
  t.ok(days > 29.9 && days < 30.1, `proven for ${days} days`);
}

t.test('memory', async (t) => {
  const known = new KnownCounters({ countersMax: 1024 });
  await same(
    t,
    memoryLimiter({ clock: processClock, known }),
    new MemoryControl({
      clock: processClock,
      known,
      rows: new Rows({ clock: processClock, onShadows: () => undefined }),
      salt: '',
      historySince: () => null,
    }),
  );
});

t.test('Redis', async (t) => {
  const redis = await startRedis(t);
  const limiter = await startLimiter(t, redis.url);
  const control = new StoreControl(accessTo(redis.url), null, Date.now);
  t.teardown(() => control.close());
  await same(t, limiter, control);
});
