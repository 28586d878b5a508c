/** Tests bans and shadows, in memory and in the store: they are bounded, and they end. */
import t from 'tap';
import { OPERATOR_ROWS_MAX, POLICY_ROWS_MAX, ROWS_MAX } from '#gateway/bans/rows.ts';
import { denialsKey, PAST_BANS_KEY, PAST_BANS_MAX, ROWS_KEY } from '#gateway/bans/scripts.ts';
import { startRedis } from '#test/support/redis.ts';
import { until } from '#test/support/until.ts';
import { addBans, BAN, bothControls, identity, memoryControl, newRows, storeControl } from './world.ts';

const digests = (count: number) => Array.from({ length: count }, (_, i) => identity(i).digest);

t.test('in memory: bans end, and a client for whom there is no room costs little', async (t) => {
  let now = 1_000_000;
  let looks = 0;
  const clock = () => now;
  const rows = newRows(t, clock);
  const control = memoryControl(clock, rows);
  await control.ban(identity(1), 1000, 'why');
  t.strictSame(await control.banOf(identity(1)), { endsAt: now + 1000, reason: 'why', policy: null });
  now += 1000;
  t.equal(await control.banOf(identity(1)), null);
  t.equal(rows.bans.size, 0, 'an ended ban is deleted');
  for (let i = 0; i < POLICY_ROWS_MAX; i++) {
    const endsAt = now + 10_000 + i;
    await control.ban(identity(i), endsAt - now, '');
    Object.defineProperty(rows.find('ban', identity(i).digest), 'endsAt', {
      get: () => {
        looks++;
        return endsAt;
      },
    });
  }
  const refused = async (): Promise<number> => {
    looks = 0;
    for (let i = 0; i < 100; i++)
      await t.rejects(control.countDenials(identity(20_000 + i), BAN, 1, 'why'), /already 9000 bans/);
    return looks;
  };
  t.equal(await refused(), 0, 'no ban can have ended');
  await control.unban(identity(0));
  await control.countDenials(identity(30_000), BAN, 1, 'why');
  now += 10_001;
  await control.countDenials(identity(30_001), BAN, 1, 'why');
  t.equal(rows.bans.size, POLICY_ROWS_MAX, 'an ended ban makes room');
  now += 1;
  t.equal(await control.countDenials(identity(30_002), BAN, 1, 'why'), 60_000);
  for (let i = 0; i < OPERATOR_ROWS_MAX - POLICY_ROWS_MAX; i++)
    await control.ban(identity(40_000 + i), 1000, '');
  await t.rejects(control.ban(identity(50_000), 1000, ''), { name: 'TooManyChangesError' });
});

t.test('in the store: all keys expire, and the number of rows is bounded', async (t) => {
  const redis = await startRedis(t);
  const control = storeControl(t, redis);
  await control.ban(identity(1), 60_000, 'why');
  await control.reset(identity(1), []);
  await control.unban(identity(2));
  const keys = await redis.client.keys('*');
  t.equal(keys.length, 4);
  for (const key of keys) {
    t.match(key, /^fg:\{control\}:/);
    t.ok((await redis.client.pttl(key)) > 0, `${key} expires`);
  }
  await redis.client.flushall();
  await addBans(redis, digests(POLICY_ROWS_MAX));
  await t.rejects(control.countDenials(identity(20_000), BAN, 1, 'why'), /already 9000 bans/);
  await control.ban(identity(20_000), 1000, 'policies leave room for operators');
  await addBans(redis, digests(OPERATOR_ROWS_MAX));
  await t.rejects(control.ban(identity(30_000), 1000, ''), { name: 'TooManyChangesError' });
  t.match(await control.ban(identity(1), 1, 'again'), { reason: 'again' }, 'it replaces another one');
  t.equal(await control.unban(identity(2)), true);
  t.equal(await control.unban(identity(2)), false);
  await until(async () => (await control.banOf(identity(1))) === null, 'it has ended');
  await addBans(redis, digests(ROWS_MAX));
  await control.reset(identity(20_001), []);
  t.equal(await redis.client.hlen(ROWS_KEY), ROWS_MAX, 'removals replace the rows that end first');
});

t.test('a ban by a policy shortens no other ban', async (t) => {
  const stores = await bothControls(t);
  const short = { ...BAN, bucket: 'short' };
  const long = { ...short, bucket: 'long', forMs: 86_400_000 };
  for (const [store, control] of Object.entries(stores)) {
    const { endsAt } = await control.ban(identity(1), 30 * 86_400_000, 'by an operator');
    t.equal(await control.countDenials(identity(1), short, 1, 'by a policy'), 60_000);
    t.strictSame(
      await control.banOf(identity(1)),
      { endsAt, reason: 'by an operator', policy: null },
      `${store}: a longer ban stays`,
    );
    await control.ban(identity(4), 60_000, 'by an operator');
    await control.countDenials(identity(4), long, 1, 'by a policy');
    t.match(await control.banOf(identity(4)), { policy: null }, `${store}: an operator’s shorter ban stays`);
    await control.countDenials(identity(2), long, 1, 'long');
    await control.countDenials(identity(2), short, 1, 'short');
    t.match(await control.banOf(identity(2)), { reason: 'long', policy: 'long' }, store);
    await control.ban(identity(2), 60_000, 'by an operator');
    t.match(await control.banOf(identity(2)), { policy: null }, `${store}: an operator replaces it`);
    await control.countDenials(identity(3), short, 1, 'short');
    await control.countDenials(identity(3), long, 1, 'long');
    t.match(await control.banOf(identity(3)), { reason: 'long' }, store);
  }
});

t.test('active bans are listed, the newest first', async (t) => {
  const stores = await bothControls(t);
  for (const [store, control] of Object.entries(stores)) {
    t.strictSame(await control.listBans(10), { total: 0, bans: [] }, store);
    await control.ban(identity(1), 3_600_000, 'the first');
    await control.countDenials(identity(2), { ...BAN, forMs: 3_600_000 }, 1, 'too often');
    await control.ban(identity(3), 1, 'short');
    await until(async () => (await control.banOf(identity(3))) === null);
    await control.ban(identity(4), 3_600_000, '');
    await control.ban(identity(5), 3_600_000, '');
    await control.unban(identity(5));
    const { total, bans: listed } = await control.listBans(10);
    t.equal(total, 3, store);
    t.match(listed, [
      { digest: identity(4).digest, reason: '', policy: null },
      { digest: identity(2).digest, reason: 'too often', policy: 'login' },
      { digest: identity(1).digest, reason: 'the first', policy: null },
    ]);
    t.ok(listed.every(({ endsAt }) => endsAt > Date.now()));
    await control.ban(identity(1), 3_600_000, 'again');
    const newest = await control.listBans(1);
    t.match(newest, { total: 3, bans: [{ reason: 'again' }] }, store);
    t.equal(newest.bans.length, 1);
  }
});

t.test('bans of a client grow, and what is remembered of denials and past bans is bounded', async (t) => {
  const redis = await startRedis(t);
  const control = storeControl(t, redis);
  const ban = { bucket: 'login', after: 2, withinMs: 600_000, forMs: 1, growing: true };
  for (const reason of ['why', '']) {
    const suffix = reason === '' ? ' shadow' : '';
    const offender = (number: number): string => `${identity(number).digest} login${suffix}`;
    await redis.client.del(PAST_BANS_KEY);
    await control.countDenials(identity(0), ban, 1, reason);
    await control.countDenials(identity(100), ban, 2, reason);
    const ms = await redis.client.pttl(denialsKey(offender(0)));
    t.ok(ms > 0 && ms <= ban.withinMs, 'the key expires with its denials');
    t.equal(await redis.client.exists(denialsKey(offender(100))), 0, 'a banned client has none');

    const many = Array.from({ length: PAST_BANS_MAX - 1 }, (_, i) => `old-${i}`);
    await redis.client.zadd(PAST_BANS_KEY, ...many.flatMap((name, i) => [i + 1, name]));
    await control.countDenials(identity(200), ban, 2, reason);
    t.equal(await redis.client.zcard(PAST_BANS_KEY), PAST_BANS_MAX);
    t.equal(await redis.client.zscore(PAST_BANS_KEY, 'old-0'), null, 'the oldest is dropped');
    t.equal(await redis.client.zscore(PAST_BANS_KEY, 'old-1'), '2');
    const again = () => control.countDenials(identity(100), ban, 2, reason);
    await until(async () => (await again()) === 2, 'other entries still grow');
    t.ok((await redis.client.pttl(PAST_BANS_KEY)) > 7 * 86_400_000);
  }
  for (const growing of [true, false]) {
    const [fast, week] = [{ ...ban, bucket: `fast ${growing}`, growing }, 7 * 86_400_000];
    t.equal(await control.countDenials(identity(1), fast, 2, ''), 1);
    await until(async () => (await control.countDenials(identity(1), fast, 2, '')) === (growing ? 2 : 1));
    const score = (Date.now() - week - 1000) * 32 + 5;
    await redis.client.zadd(PAST_BANS_KEY, score, `${identity(1).digest} ${fast.bucket} shadow`);
    t.equal(await control.countDenials(identity(1), fast, 2, ''), 1, 'past bans are dropped after a week');
  }
});

t.test('a shadow mode ends by itself', async (t) => {
  let now = 1_000_000;
  let changes = 0;
  const rows = newRows(
    t,
    () => now,
    () => changes++,
  );
  const memory = memoryControl(() => now, rows);
  t.equal(await memory.shadow('a', 60_000), now + 60_000);
  t.equal(await memory.shadow('a', 90_000), now + 90_000, 'the later call takes precedence');
  t.equal(changes, 1, 'a longer shadow changes no decision');
  t.equal(await memory.unshadow('a'), true);
  t.equal(await memory.unshadow('a'), false);
  t.equal(changes, 2);
  await memory.shadow('short', 20);
  await memory.shadow('long', 60_000);
  now += 30;
  await until(() => !rows.shadows.has('short'));
  t.strictSame([...(await memory.shadows()).keys()], ['long']);

  const control = storeControl(t, await startRedis(t));
  const before = Date.now();
  const endsAt = await control.shadow('a', 600_000);
  t.ok(endsAt >= before + 600_000);
  t.strictSame([...(await control.shadows())], [['a', endsAt]]);
  t.equal(await control.unshadow('a'), true);
  t.equal(await control.unshadow('a'), false);
  await control.shadow('short', 1);
  await until(async () => (await control.shadows()).size === 0);
});
