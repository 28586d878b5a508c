/** Tests that only so many clients a day are remembered for the first time, in Redis and in memory. */
import t, { type Test } from 'tap';
import { Bucket } from '#gateway/limiter/charge.ts';
import { historyKey } from '#gateway/limiter/history.ts';
import { KnownCounters } from '#gateway/limiter/known-counters.ts';
import type { Limiter } from '#gateway/limiter/limiter.ts';
import { Counter } from '#gateway/policy/counter.ts';
import { DAY_MS, HISTORY_DAYS, type VisitRule } from '#gateway/policy/groups.ts';
import { processClock, startLimiter } from '#test/support/guarded-limiter.ts';
import { type RedisServer, startRedis } from '#test/support/redis.ts';
import { chargeOf, identity, memoryLimiter, policy, spend } from '#test/support/spend.ts';
import { until } from '#test/support/until.ts';
import { insideLongWindow, LONG_WINDOW_SECONDS } from '#test/support/window.ts';

const rule = (newPerDay: number): VisitRule => ({ visits: 2, days: 30, newPerDay });
const insideDay = (): Promise<void> => insideLongWindow(DAY_MS, 120_000);

/** @param network the IPv6 network of these clients; null for IPv4 */
function visit(
  limiter: Limiter,
  names: readonly string[],
  newPerDay: number,
  network: string | null = null,
): void {
  const ofNetwork = () => (network === null ? null : identity(network));
  for (const name of names) limiter.visited(identity(name), rule(newPerDay), ofNetwork);
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

t.test('each gateway stores its share of the new clients of a day', async (t) => {
  await insideDay();
  const redis = await startRedis(t);
  const first = await startTelling(t, redis);
  const second = await startTelling(t, redis);
  await until(() => first.limiter.stats().replicas === 2);
  visit(first.limiter, names('a', 200), 100);
  await until(async () => (await stored(redis)) === 50);
  visit(second.limiter, [...names('a', 50), ...names('b', 200)], 100);
  await until(() => first.warnings.length + second.warnings.length === 2, 'both tell that the day is full');
  t.match(first.warnings, [
    /as many new clients as regulars.newPerDay allows this process were stored today/,
  ]);
  await until(async () => (await stored(redis)) === 100, 'those that the store knows are no new ones');
});

t.test('in memory, further clients stay newcomers until the next day', async (t) => {
  let now = processClock();
  const warnings: object[] = [];
  const limiter = memoryLimiter({ clock: () => now, log: { warn: (fields) => void warnings.push(fields) } });
  const regulars = (): string[] => names('a', 5).filter((name) => limiter.isProven(identity(name)));
  visit(limiter, names('a', 5), 3);
  t.strictSame(warnings, [{ share: 3 }]);
  now += DAY_MS;
  visit(limiter, ['a4', 'a3', ...names('a', 3)], 3);
  t.strictSame(regulars(), ['a0', 'a1', 'a2'], 'those of the first day were here on two');
  t.equal(warnings.length, 1, 'this day has room for a3 and a4');
  now += DAY_MS;
  visit(limiter, names('a', 5), 3);
  t.strictSame(regulars(), names('a', 5));
});

t.test('in memory, one IPv6 network has a quarter of them too', async (t) => {
  const known = new KnownCounters({ countersMax: 64 });
  const limiter = memoryLimiter({ clock: processClock, known });
  const remembered = (prefix: string): number =>
    names(prefix, 20).filter((name) => known.histories.of(identity(name)) !== null).length;
  visit(limiter, names('a', 20), 3, 'one /48');
  t.equal(remembered('a'), 1, 'at least one');
  visit(limiter, names('a', 20), 8, 'one /48');
  t.equal(remembered('a'), 2);
  visit(limiter, names('c', 20), 8, 'another /48');
  t.equal(remembered('c'), 2);
  visit(limiter, names('b', 20), 8);
  t.equal(remembered('b'), 4, 'all others have the rest');
});

const stricter: VisitRule = { visits: 5, days: 30, newPerDay: 100 };

t.test('a rule that asks for more days takes effect with the next visit', async (t) => {
  await insideDay();
  let now = processClock();
  const memory = memoryLimiter({ clock: () => now });
  for (let i = 0; i < 2; i++, now += DAY_MS) visit(memory, ['a'], 100);
  t.equal(memory.isProven(identity('a')), true);
  memory.visited(identity('a'), stricter, () => null);
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
  other.limiter.visited(identity('a'), stricter, () => null);
  await until(() => !other.limiter.isProven(identity('a')), 'with Redis');
});
