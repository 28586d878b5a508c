/**
 * Tests that gateways write back since when clients are known, and on which days they were here, when Redis comes back
 * without its data or with a part of it.
 */
import t, { type Test } from 'tap';
import { proofKey } from '#gateway/limiter/charge.ts';
import { dayOf, historyKey } from '#gateway/limiter/history.ts';
import { historySinceKey, type KeptHistories, SALT_KEY } from '#gateway/limiter/replicas.ts';
import { DAY_MS, HISTORY_DAYS } from '#gateway/policy/groups.ts';
import { startLimiter } from '#test/support/guarded-limiter.ts';
import { type RedisServer, startRedis } from '#test/support/redis.ts';
import { startRelay } from '#test/support/relay.ts';
import { identity } from '#test/support/spend.ts';
import { until } from '#test/support/until.ts';
import { insideLongWindow } from '#test/support/window.ts';

const NAME = 'histories';
const rule = { visits: 2, days: 30, newPerDay: 10_000 };
const insideDay = (): Promise<void> => insideLongWindow(DAY_MS, 120_000);
const names = (prefix: string, count: number): string[] =>
  Array.from({ length: count }, (_, i) => `${prefix}${i}`);

/** Starts a gateway that keeps histories. */
async function start(t: Test, { url }: Pick<RedisServer, 'url'>, salt = 'salt') {
  const heard: { since: number | null } = { since: null };
  const histories = {
    inUse: (): KeptHistories => ({ name: NAME, keptMs: 2 * DAY_MS, since: heard.since }),
    hear: (_name: string, since: number) => {
      heard.since = since;
    },
  };
  const salts = [salt];
  const onSalt = (shared: string) => void salts.push(shared);
  const limiter = await startLimiter(t, url, { histories, salt, onSalt });
  const visit = (clients: readonly string[], newPerDay = rule.newPerDay): void => {
    for (const client of clients) limiter.visited(identity(client), { ...rule, newPerDay }, () => null);
  };
  return { limiter, heard, visit, salts, beat: () => limiter.learnHistories() };
}

/** These clients were here on the day before. */
async function visitedYesterday({ client: redis }: RedisServer, clients: readonly string[]): Promise<void> {
  const yesterday = String((dayOf(Date.now()) - 1) * 2 ** HISTORY_DAYS + 1);
  await redis.mset(clients.flatMap((name) => [historyKey(identity(name)), yesterday]));
}

/** Returns the days of all clients, and which of them are regulars until when. */
async function contents({ client: redis }: RedisServer): Promise<Record<string, string | number | null>> {
  const keys = [...(await redis.keys('fg:{*}:days')), ...(await redis.keys('fg:{*}:proven'))].sort();
  const entries = keys.map(async (key) => {
    // The value of a marker is the hour in which it was set. The store's clock goes on while it computes the end.
    const value = key.endsWith('days') ? await redis.get(key) : null;
    return [key, `${value} until ${Math.round((await redis.pexpiretime(key)) / 10_000)}`] as const;
  });
  return Object.fromEntries(await Promise.all(entries));
}

const count = async ({ client: redis }: RedisServer): Promise<number> =>
  (await redis.keys('fg:{*}:days')).length;
const regulars = async ({ client: redis }: RedisServer): Promise<number> =>
  (await redis.keys('fg:{*}:proven')).length;

t.test('the oldest beginning that a gateway knows is kept', async (t) => {
  const redis = await startRedis(t);
  const key = historySinceKey(NAME);
  const began = Date.now() - 7 * DAY_MS;
  await redis.client.set(key, began);
  const one = await start(t, redis);
  await one.beat();
  t.equal(one.heard.since, began);

  await redis.client.flushall();
  const restarted = await start(t, redis);
  await restarted.beat();
  t.ok(Number(restarted.heard.since) >= began, 'it may have been the first one');
  await one.beat();
  t.equal(await redis.client.get(key), String(began));
  await restarted.beat();
  t.equal(restarted.heard.since, began);
  t.equal(one.heard.since, began);

  await redis.client.set(key, Date.now() + 90 * DAY_MS);
  await one.beat();
  t.equal(await redis.client.get(key), String(began), 'a clock that was wrong');
});

t.test('an empty store gets back the days of all clients that a gateway knows', async (t) => {
  await insideDay();
  const redis = await startRedis(t);
  await visitedYesterday(redis, names('a', 3));
  await visitedYesterday(redis, names('b', 3));
  const [one, two] = [await start(t, redis), await start(t, redis)];
  one.visit([...names('a', 3), 'new']);
  two.visit([...names('b', 3), 'a0']);
  await until(async () => (await regulars(redis)) === 6 && (await count(redis)) === 7);
  const before = await contents(redis);

  await redis.client.flushall();
  const restarted = await start(t, redis);
  restarted.visit(['a1', 'other']);
  await until(async () => (await redis.client.exists(historyKey(identity('a1')))) === 1);
  await one.beat();
  await two.beat();
  await until(async () => (await regulars(redis)) === 6 && (await count(redis)) === 8);
  const { [historyKey(identity('other'))]: other, ...after } = await contents(redis);
  t.strictSame(after, before);
  t.ok(other);

  restarted.visit(['b0']);
  await until(() => restarted.limiter.isProven(identity('b0')), 'a regular of another gateway');
});

t.test('an interrupted write goes on, and begins again if the store loses its data once more', async (t) => {
  await insideDay();
  const redis = await startRedis(t);
  let bytesLeft = Number.POSITIVE_INFINITY;
  const port = await startRelay(t, redis.port, (client, store) => {
    store.pipe(client);
    client.on('data', (bytes) => {
      bytesLeft -= bytes.length;
      if (bytesLeft < 0) client.destroy();
      else store.write(bytes);
    });
  });
  const clients = names('a', 3000);
  await visitedYesterday(redis, clients);
  const one = await start(t, { url: `redis://127.0.0.1:${port}` });
  one.visit(clients);
  await until(async () => (await regulars(redis)) === 3000);
  const before = await contents(redis);
  for (const fate of ['goes on', 'is emptied again']) {
    bytesLeft = 100_000;
    await redis.client.flushall();
    await until(() => bytesLeft < 0, 'the connection is cut');
    const part = await count(redis);
    t.ok(part > 0 && part < 3000, `${part} were written`);
    if (fate === 'is emptied again') await redis.client.flushall();
    bytesLeft = Number.POSITIVE_INFINITY;
    await until(async () => (await regulars(redis)) === 3000, `it ${fate}`);
    t.strictSame(await contents(redis), before);
  }
});

t.test('what was not in the store before is not written', async (t) => {
  await insideDay();
  const redis = await startRedis(t);
  await visitedYesterday(redis, ['regular', 'reset']);
  const one = await start(t, redis);
  // The store has lost the first one, and yesterday had no room for the second one.
  for (const [name, days] of [
    ['lost', 1],
    ['late', 0],
  ] as const)
    one.limiter.known.histories.note(identity(name), { last: dayOf(Date.now()) - 1, days });
  one.visit(['regular', 'reset', 'lost']);
  await until(async () => (await regulars(redis)) === 3);
  one.visit([...names('a', 20), 'late'], 5);
  await until(async () => (await count(redis)) === 8);
  await redis.kill();
  await until(() => !one.limiter.stats().available);
  one.limiter.known.forget(identity('reset'), []);
  await redis.restart();
  await until(async () => (await count(redis)) >= 7);
  await until(() => one.limiter.stats().available);
  await one.beat();
  t.equal(await count(redis), 7, 'neither the client that an operator has reset, nor those over newPerDay');
  t.equal(await regulars(redis), 2);
});

t.test('the oldest salt stays, by which gateways find clients', async (t) => {
  await insideDay();
  const redis = await startRedis(t);
  await visitedYesterday(redis, ['regular']);
  const one = await start(t, redis, 'old');
  one.visit(['regular']);
  await until(async () => (await regulars(redis)) === 1);
  await redis.client.flushall();
  const restarted = await start(t, redis, 'new');
  const another = await start(t, redis, 'newer');
  await until(async () => (await regulars(redis)) === 1);
  for (const { beat } of [restarted, another, one, restarted]) await beat();
  t.equal(await redis.client.get(SALT_KEY), 'old');
  t.strictSame(one.salts, ['old']);
});

t.test('a credential that works is reported again', async (t) => {
  const redis = await startRedis(t);
  const { limiter, beat } = await start(t, redis);
  const key = identity('key');
  const isStored = async () => (await redis.client.exists(proofKey(key))) === 1;
  limiter.prove(key);
  await until(isStored);
  await beat();
  t.ok(limiter.isProofFresh(key));
  await redis.client.flushall();
  await beat();
  t.ok(limiter.isProven(key));
  t.notOk(limiter.isProofFresh(key), 'its next good reply is reported');
  limiter.prove(key);
  await until(isStored);
  t.ok(limiter.isProofFresh(key), 'once');
});
