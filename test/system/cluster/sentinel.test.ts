/**
 * A primary and its replica under three sentinels. Redis loses writes that were not replicated before the primary died.
 */
import t from 'tap';
import { type RedisServer, startRedis } from '#test/support/redis.ts';
import { SERVICE, startWatchedRedis } from '#test/support/redis-sentinel.ts';
import { COUNT, fault, load, storeAt } from '#test/support/store.ts';
import { until } from '#test/support/until.ts';

t.test('follows a planned failover under load, and executes nothing twice', async (t) => {
  const redis = await startWatchedRedis(t);
  const store = storeAt(t, redis.url);
  await store.connect();
  t.equal(store.slotOf('any'), null);
  const calls = load(store, 'k');
  await calls.untilMore(200);
  await redis.failover();
  const isConnectedTo = async ({ client }: RedisServer): Promise<boolean> =>
    String(await client.call('CLIENT', 'LIST')).includes('name=floodgate');
  await until(async () => (await isConnectedTo(redis.second)) && !(await isConnectedTo(redis.first)));
  // A few replies of the old primary may still be on their way.
  await calls.untilMore(20);
  const from = calls.acknowledged.length;
  await calls.untilMore(200);
  await calls.stop();
  const counted = await redis.second.client.hgetall('k');
  t.ok(
    calls.acknowledged.slice(from).every((field) => counted[field] === '1'),
    'calls that the new primary acknowledged are counted',
  );
  t.strictSame(calls.wrong, [], 'nothing is executed twice');
  t.ok(Object.values(counted).every((count) => count === '1'));
  t.ok(Object.keys(counted).length <= calls.acknowledged.length + calls.rejected.size);
});

t.test('the primary is killed under load: its replica takes over', async (t) => {
  const redis = await startWatchedRedis(t);
  const store = storeAt(t, redis.url);
  await store.connect();
  const calls = load(store, 'k');
  await calls.untilMore(200);
  await redis.watchClosely();
  await redis.first.kill();
  await until(() => !store.ready);
  await redis.untilPrimaryIs(redis.second);
  await until(() => store.ready);
  const from = calls.acknowledged.length;
  await calls.untilMore(500);
  await calls.stop();
  t.strictSame(calls.wrong, []);
  const counted = await redis.second.client.hgetall('k');
  t.ok(Object.values(counted).every((count) => count === '1'));
  t.ok(
    calls.acknowledged.slice(from + 20).every((field) => counted[field] === '1'),
    'calls that the new primary acknowledged are counted',
  );
});

t.test('leaves an old primary that is reachable and still acts as primary', async (t) => {
  const redis = await startWatchedRedis(t);
  const store = storeAt(t, redis.url);
  await store.connect();
  // Prevents the sentinels from making it a replica, as if only they had lost it.
  await redis.first.client.call('ACL', 'SETUSER', 'default', '-replicaof', '-slaveof', '-multi');
  await redis.watchClosely();
  redis.first.freeze();
  await redis.untilPrimaryIs(redis.second);
  redis.first.thaw();
  await until(async () => {
    await store.run(COUNT, ['k'], ['f']).catch((error: Error) => error);
    return (await redis.second.client.hexists('k', 'f')) === 1;
  });
  t.match(
    await redis.first.client.info('replication'),
    /role:master/,
    'the old primary would still accept writes',
  );
});

t.test('two sentinels are frozen or dead, then all: the open connection keeps counting', async (t) => {
  const redis = await startWatchedRedis(t);
  const [a, b] = redis.sentinels;
  a?.freeze();
  await b?.kill();
  const store = storeAt(t, redis.url);
  await store.connect();
  t.equal(await store.run(COUNT, ['k'], ['f']), 1, 'the third one names the primary');
  a?.thaw();
  await Promise.all(redis.sentinels.map(({ kill }) => kill()));
  const calls = load(store, 'k');
  await calls.untilMore(100);
  await calls.stop();
  t.equal(calls.rejected.size, 0);
  await redis.first.client.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
  await until(() => !store.ready);
  await until(() => /no sentinel names the primary: .*nothing listens there/.test(store.whyDown().message));
  t.match((await fault(store.run(COUNT, ['k'], ['f']))).message, /no sentinel names the primary/);
});

t.test('servers with a password, a database, and another service name', async (t) => {
  const redis = await startWatchedRedis(t, 'secret');
  const store = storeAt(t, `${redis.url}/2`);
  await store.connect();
  t.equal(await store.run(COUNT, ['k'], ['f']), 1);
  await redis.first.client.select(2);
  t.equal(await redis.first.client.hget('k', 'f'), '1');

  const other = storeAt(t, redis.url.replace(SERVICE, 'other'));
  await t.rejects(other.connect(), { message: /do not know the service/ });
  const open = storeAt(t, redis.url.replace(':secret@', ''));
  await t.rejects(open.connect(), { message: /NOAUTH/ });

  for (const { client } of redis.sentinels)
    await client.call('ACL', 'SETUSER', 'default', 'resetpass', '>watch');
  const watched = storeAt(t, `${redis.url}?sentinel_password=watch`);
  await watched.connect();
  t.equal(await watched.run(COUNT, ['k'], ['g']), 1, 'sentinels with a password of their own');
});

t.test('reports an address of one kind where the other is needed', async (t) => {
  const redis = await startRedis(t);
  const noSentinel = storeAt(t, `redis+sentinel://127.0.0.1:${redis.port}/s`);
  await t.rejects(noSentinel.connect(), { message: /the server is not a sentinel: write redis:\/\// });
  const watched = await startWatchedRedis(t);
  const sentinel = storeAt(t, `redis://127.0.0.1:${watched.sentinels[0]?.port}`);
  await t.rejects(sentinel.connect(), { message: /the server is a sentinel: write redis\+sentinel:\/\// });
});
