/** Tests that only so many clients a day are remembered for the first time: in Redis over all gateways, and in memory. */
import t, { type Test } from 'tap';
import { Bucket } from '#gateway/limiter/charge.ts';
import type { Limiter } from '#gateway/limiter/limiter.ts';
import { NewClients } from '#gateway/limiter/new-clients.ts';
import { historyKey } from '#gateway/limiter/visits.ts';
import { Counter } from '#gateway/policy/counter.ts';
import { DAY_MS, HISTORY_DAYS, type VisitRule } from '#gateway/policy/regulars.ts';
import { processClock, startLimiter } from '#test/support/guarded-limiter.ts';
import { type RedisServer, startRedis } from '#test/support/redis.ts';
import { chargeOf, identity, memoryLimiter, part, policy, spend } from '#test/support/spend.ts';
import { until } from '#test/support/until.ts';
import { insideLongWindow, LONG_WINDOW_SECONDS } from '#test/support/window.ts';

const rule = (newPerDay: number): VisitRule => ({ visits: 2, days: 30, newPerDay });
const insideDay = (): Promise<void> => insideLongWindow(DAY_MS, 120_000);

function visit(limiter: Limiter, names: readonly string[], newPerDay: number): void {
  for (const name of names) limiter.visited(identity(name), rule(newPerDay));
}

const names = (prefix: string, count: number): string[] =>
  Array.from({ length: count }, (_, i) => `${prefix}${i}`);

async function stored({ client }: RedisServer): Promise<number> {
  return (await client.keys('fg:{*}:days')).length;
}

/** Starts a limiter that collects its warnings. */
async function startTelling(t: Test, redis: RedisServer) {
  const warnings: string[] = [];
  const log = { warn: (_: object, text: string) => void warnings.push(text), info: () => undefined };
  return { limiter: await startLimiter(t, redis.url, { log }), warnings };
}

t.test('gateways that start after the day is full store no more', async (t) => {
  await insideDay();
  const redis = await startRedis(t);
  const first = await startTelling(t, redis);
  visit(first.limiter, names('a', 500), 100);
  await until(() => first.warnings.length === 1, 'it tells that the day is full');
  t.match(first.warnings, [/as many new clients as regulars.newPerDay allows were stored today/]);
  t.equal(await stored(redis), 100);
  await first.limiter.close();
  const counter = `fg:{control}:new:${Math.floor(Date.now() / DAY_MS)}`;
  t.equal(await redis.client.get(counter), '100');
  for (let i = 1; i <= 3; i++) {
    const { limiter, warnings } = await startTelling(t, redis);
    // A gateway learns with its first new client how many there are.
    visit(limiter, [`b${i}`], 100);
    await until(async () => (await redis.client.get(counter)) === String(100 + i));
    // The answer to this request comes after that.
    await spend(limiter, chargeOf(part(policy('any', 10, LONG_WINDOW_SECONDS))));
    visit(limiter, names(`c${i}-`, 200), 100);
    await until(() => warnings.length === 1, 'it knows that the day is full');
    await limiter.close();
  }
  t.equal(await stored(redis), 103, 'one more for each gateway that did not know');
  const leftMs = await redis.client.pttl(counter);
  t.ok(leftMs > DAY_MS && leftMs <= 2 * DAY_MS, `the counter itself is forgotten in ${leftMs} ms`);
});

t.test('after the store has lost its data, clients are stored again on a full day', async (t) => {
  await insideDay();
  const redis = await startRedis(t);
  const { limiter, warnings } = await startTelling(t, redis);
  visit(limiter, names('a', 101), 100);
  await until(() => warnings.length === 1);
  await redis.client.flushall();
  limiter.forgetHistories();
  visit(limiter, names('a', 101), 100);
  await until(() => warnings.length === 2);
  t.equal(await stored(redis), 100);
});

t.test('in memory, further clients stay newcomers until the next day', async (t) => {
  let now = processClock();
  const warnings: object[] = [];
  const limiter = memoryLimiter({ clock: () => now, log: { warn: (fields) => void warnings.push(fields) } });
  const regulars = (): string[] => names('a', 5).filter((name) => limiter.isProven(identity(name)));
  visit(limiter, names('a', 5), 3);
  t.strictSame(warnings, [{ newPerDay: 3 }]);
  now += DAY_MS;
  visit(limiter, ['a4', 'a3', ...names('a', 3)], 3);
  t.strictSame(regulars(), ['a0', 'a1', 'a2'], 'those of the first day were here on two');
  t.equal(warnings.length, 1, 'this day has room for a3 and a4');
  now += DAY_MS;
  visit(limiter, names('a', 5), 3);
  t.strictSame(regulars(), names('a', 5));
});

t.test('a day begins once, although the clock is corrected at midnight', async (t) => {
  const clients = new NewClients(null);
  t.equal(clients.take(7, 100, rule(10)), 7);
  t.equal(clients.take(7, 101, rule(10)), 7, 'the next day');
  t.equal(clients.take(7, 100, rule(10)), 3, 'the clock went back');
  t.equal(clients.take(7, 101, rule(10)), 0);
  t.equal(clients.take(7, 90, rule(10)), 7, 'the clock was wrong by days');
  clients.give(2, 90);
  t.equal(clients.take(7, 90, rule(10)), 5);
  clients.give(5, 89);
  t.equal(clients.take(1, 90, rule(10)), 0, 'room of another day');
});

t.test('what other gateways have stored leaves less room', async (t) => {
  const clients = new NewClients(null);
  t.equal(clients.take(4, 1, rule(10)), 4);
  clients.hear(8, 4, 1);
  t.equal(clients.take(4, 1, rule(10)), 2, 'four of the eight are own ones');
  clients.hear(7, 0, 1);
  t.equal(clients.take(1, 1, rule(10)), 0, 'an older number');
});

const stricter: VisitRule = { visits: 5, days: 30, newPerDay: 100 };

t.test('a rule that asks for more days takes effect with the next visit', async (t) => {
  await insideDay();
  let now = processClock();
  const memory = memoryLimiter({ clock: () => now });
  for (let i = 0; i < 2; i++, now += DAY_MS) visit(memory, ['a'], 100);
  t.equal(memory.isProven(identity('a')), true);
  memory.visited(identity('a'), stricter);
  t.equal(memory.isProven(identity('a')), false, 'in memory');

  const redis = await startRedis(t);
  const { limiter } = await startTelling(t, redis);
  const yesterday = Math.floor(Date.now() / DAY_MS) - 1;
  await redis.client.set(historyKey(identity('a')), String(yesterday * 2 ** HISTORY_DAYS + 1));
  visit(limiter, ['a'], 100);
  await until(() => limiter.isProven(identity('a')));
  const other = await startTelling(t, redis);
  const charge = chargeOf(
    new Bucket(new Counter(policy('any', 10, LONG_WINDOW_SECONDS), false), identity('all'), [identity('a')]),
  );
  await spend(other.limiter, charge);
  t.equal(other.limiter.isProven(identity('a')), true);
  other.limiter.visited(identity('a'), stricter);
  await until(() => !other.limiter.isProven(identity('a')), 'with Redis');
});
