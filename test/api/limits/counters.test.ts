/** All stores pass the same tests. */
import { pino } from 'pino';
import t from 'tap';
import { type Counters, CountersUnavailable, createMemoryCounters } from '#api/limits/counters.ts';
import { createRedisCounters } from '#api/limits/redis-counters.ts';
import { startRedis } from '#test/support/redis.ts';
import { stall, stallUntil } from '#test/support/stall.ts';
import { STORE_BUDGET_MS } from '#test/support/store-budget.ts';
import { until } from '#test/support/until.ts';

const redis = await startRedis(t);
const silent = pino({ level: 'silent' });
/** Collects the levels of what is logged. */
const logInto = (told: string[]) =>
  pino(
    { formatters: { level: (label) => ({ level: label }) } },
    { write: (line: string) => void told.push(JSON.parse(line).level) },
  );

/** Resolves once the store answers, because it connects after its creation. */
async function ready(counters: Counters): Promise<Counters> {
  for (;;) {
    try {
      await counters.use('ready', 'x', 1);
      return counters;
    } catch (error) {
      if (!(error instanceof CountersUnavailable)) throw error;
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
  }
}

const open = (): Promise<Counters> => ready(createRedisCounters(redis.url, silent, STORE_BUDGET_MS));
let now = 0;

const stores: readonly (readonly [string, () => Promise<Counters>, () => Promise<unknown>])[] = [
  ['memory', async () => createMemoryCounters(() => now), async () => (now += 60_000)],
  // Redis has a real clock. The test checks the length of the window and then ends it in the store.
  [
    'Redis',
    open,
    () => redis.client.pexpire('fga:windows:a', 1).then(() => redis.client.pexpire('fga:windows:a', 0)),
  ],
];
for (const [name, create, endWindow] of stores) {
  t.test(name, async (t) => {
    const counters = await create();
    t.teardown(() => counters.close());

    await t.test('counts by name and key', async (t) => {
      const used: number[] = [];
      for (const [row, key] of [
        ['n1', 'a'],
        ['n1', 'a'],
        ['n1', 'b'],
        ['n2', 'a'],
        ['n1', 'a'],
      ] as const) {
        used.push((await counters.use(row, key, 60)).used);
      }
      t.strictSame(used, [1, 2, 1, 1, 3]);
    });

    await t.test('a window has the given length, and begins with its first use', async (t) => {
      const first = await counters.use('windows', 'a', 60);
      t.ok(first.resetMs > 59_000 && first.resetMs <= 60_000, `${first.resetMs}`);
      t.ok((await counters.use('windows', 'a', 60)).resetMs <= first.resetMs, 'the window is not extended');
      await endWindow();
      t.equal((await counters.use('windows', 'a', 60)).used, 1);
    });

    await t.test('a use that is given back does not count', async (t) => {
      t.equal((await counters.use('back', 'a', 60)).used, 1);
      t.equal((await counters.use('back', 'a', 60)).used, 2);
      await counters.giveBack('back', 'a', 60);
      t.equal((await counters.use('back', 'a', 60)).used, 2);
    });

    await t.test('counts all concurrent uses', async (t) => {
      const counts = await Promise.all(Array.from({ length: 200 }, () => counters.use('burst', 'a', 60)));
      t.equal(new Set(counts.map(({ used }) => used)).size, 200);
    });
  });
}

t.test('two processes share the counters in Redis', async (t) => {
  const [one, other] = [await open(), await open()];
  t.teardown(() => Promise.all([one.close(), other.close()]));
  await one.use('shared', 'a', 60);
  t.equal((await other.use('shared', 'a', 60)).used, 2);
});

t.test('memory is bounded: drops the oldest window', async (t) => {
  const counters = createMemoryCounters(() => 0, 2);
  for (const key of ['a', 'b', 'c']) await counters.use('n', key, 60);
  t.equal((await counters.use('n', 'c', 60)).used, 2);
  t.equal((await counters.use('n', 'b', 60)).used, 2);
  t.equal((await counters.use('n', 'a', 60)).used, 1);
});

t.test('a frozen store delays one call for a bounded time and no other, and is used again', async (t) => {
  const BUDGET_MS = 300;
  const own = await startRedis(t);
  const told: string[] = [];
  const counters = await ready(createRedisCounters(own.url, logInto(told), BUDGET_MS));
  t.teardown(() => counters.close());
  told.length = 0;
  own.freeze();
  t.teardown(() => own.thaw());
  for (let i = 0; i < 20; i++) await t.rejects(counters.use('n', 'a', 60), CountersUnavailable);
  await until(() => told.length > 0);
  t.strictSame(told, ['warn'], 'the change is reported once');
  const before = performance.now();
  for (let i = 0; i < 1000; i++) await counters.use('n', 'a', 60).catch(() => undefined);
  t.ok(performance.now() - before < 500 * BUDGET_MS, 'no call waits for a store that is down');
  own.thaw();
  await ready(counters);
  t.strictSame(told, ['warn', 'info']);
});

t.test('a stall of this process is no outage of a store that has answered meanwhile', async (t) => {
  const BUDGET_MS = 50;
  const own = await startRedis(t);
  const told: string[] = [];
  const counters = createRedisCounters(own.url, logInto(told), BUDGET_MS);
  t.teardown(() => counters.close());
  await ready(counters);
  told.length = 0;
  const uses = Array.from({ length: 60 }, () => counters.use('stalled', 'a', 60));
  const settled = Promise.allSettled(uses);
  const COUNTED =
    "const { Redis } = require('ioredis'); const redis = new Redis(process.argv[1]);" +
    "redis.get('fga:stalled:a').then((used) => process.exit(used === '60' ? 0 : 1), () => process.exit(1))";
  stallUntil(process.execPath, ['-e', COUNTED, own.url]);
  stall(4 * BUDGET_MS);
  const refused = (await settled).filter(({ status }) => status === 'rejected');
  t.equal(refused.length, 0, 'every use is counted');
  t.strictSame(told, []);
});

t.test('uses a store that becomes available after the start', async (t) => {
  const own = await startRedis(t);
  await own.kill();
  const counters = createRedisCounters(own.url, silent, STORE_BUDGET_MS);
  t.teardown(() => counters.close());
  await t.rejects(counters.use('n', 'a', 60), CountersUnavailable);
  await own.restart();
  await ready(counters);
  t.equal((await counters.use('n', 'a', 60)).used, 1);
});
