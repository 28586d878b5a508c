/** Tests bans and shadows, in memory and in the store: they are bounded, and they end. */
import t, { type Test } from 'tap';
import { BANS_MAX, Bans, POLICY_BANS_MAX } from '#gateway/bans/bans.ts';
import { MemoryControl } from '#gateway/bans/memory-control.ts';
import { Rows } from '#gateway/bans/rows.ts';
import { PAST_BANS_MAX, pastBansKey, rowKey, setKey } from '#gateway/bans/scripts.ts';
import { SHADOWS_MAX, Shadows } from '#gateway/bans/shadows.ts';
import { StoreControl } from '#gateway/bans/store-control.ts';
import { identityOf } from '#gateway/identity/digest.ts';
import { KnownCounters } from '#gateway/limiter/known-counters.ts';
import type { Clock } from '#shared/clock.ts';
import { type RedisServer, startRedis } from '#test/support/redis.ts';
import { accessTo } from '#test/support/store.ts';
import { until } from '#test/support/until.ts';

const identity = (number: number) => identityOf(String(number).padStart(21, 'x').concat('A'));

function storeControl(t: Test, { url }: RedisServer): StoreControl {
  const control = new StoreControl(accessTo(url), 'salt', Date.now);
  t.teardown(() => control.close());
  return control;
}

/** Writes bans into the store as if they had been made one after the other. */
async function addBans({ client }: RedisServer, count: number): Promise<void> {
  const digests = Array.from({ length: count }, (_, i) => identity(i).digest);
  const pipeline = client.pipeline();
  for (const digest of digests)
    pipeline.set(rowKey('ban', digest), `${Date.now() + 3_600_000} \n`, 'PX', 3_600_000);
  await pipeline.exec();
  await client.zadd(setKey('ban'), ...digests.flatMap((digest, i) => [i + 1, digest]));
}

function memoryControl(
  clock: Clock,
  rows = new Rows(new Bans(), new Shadows({ clock, onChange: () => undefined })),
): MemoryControl {
  const known = new KnownCounters({ countersMax: 16, credentialsMax: 16 });
  return new MemoryControl({ clock, known, rows, salt: '', replica: 'r' });
}

async function bothControls(t: Test) {
  return { memory: memoryControl(Date.now), Redis: storeControl(t, await startRedis(t)) };
}

/** The `ban` of a policy that bans for a minute after one denial. */
const BAN = { bucket: 'login', after: 1, withinMs: 60_000, forMs: 60_000, growing: false };

t.test('in memory: a ban ends, and their number is bounded', async (t) => {
  let now = 1_000_000;
  const clock = () => now;
  const bans = new Bans();
  const control = memoryControl(clock, new Rows(bans, new Shadows({ clock, onChange: () => undefined })));
  await control.ban(identity(1), 1000, 'why');
  t.strictSame(await control.banOf(identity(1)), { endsAt: now + 1000, reason: 'why', policy: null });
  now += 1000;
  t.equal(await control.banOf(identity(1)), null);
  t.equal(bans.size, 0, 'an ended ban is deleted');
  for (let i = 0; i < BANS_MAX; i++) await control.ban(identity(i), 1000, '');
  await t.rejects(control.ban(identity(BANS_MAX), 1000, ''), { name: 'TooManyBansError' });
  await control.ban(identity(0), 2000, 'longer');
  now += 1000;
  await control.ban(identity(BANS_MAX), 1000, '');
  t.equal(bans.size, 2, 'ended bans make room');
  for (let i = 0; i < BANS_MAX + 100; i++) {
    await control.ban(identity(i), 1, 'short');
    now += 1;
    await control.banOf(identity(i));
  }
  t.ok(bans.size <= BANS_MAX, 'the number of bans is bounded');
});

t.test('in memory: a client for whom there is no room costs little', async (t) => {
  let now = 1_000_000;
  let looks = 0;
  const clock = () => now;
  const bans = new Bans();
  const rows = new Rows(bans, new Shadows({ clock, onChange: () => undefined }));
  const control = memoryControl(clock, rows);
  for (let i = 0; i < POLICY_BANS_MAX; i++) {
    const endsAt = now + 10_000 + i;
    await control.ban(identity(i), endsAt - now, '');
    const active = rows.of('ban').get(identity(i).digest) as object;
    Object.defineProperty(active, 'endsAt', {
      get: () => {
        looks++;
        return endsAt;
      },
    });
  }
  const refused = async (): Promise<number> => {
    looks = 0;
    for (let i = 0; i < 100; i++)
      await t.rejects(control.countDenials(identity(20_000 + i), BAN, 1, 'why'), {
        name: 'TooManyBansError',
      });
    return looks;
  };
  t.equal(await refused(), 0, 'no ban can have ended');
  await control.unban(identity(0));
  await control.countDenials(identity(30_000), BAN, 1, 'why');
  now += 10_001;
  await control.countDenials(identity(30_001), BAN, 1, 'why');
  t.equal(bans.size, POLICY_BANS_MAX, 'an ended ban makes room');
  t.equal(await refused(), 0);
  now += 1;
  t.equal(await control.countDenials(identity(30_002), BAN, 1, 'why'), 60_000);
});

t.test('in the store: all keys expire, and the number of bans is bounded', async (t) => {
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
  await addBans(redis, BANS_MAX);
  await t.rejects(control.ban(identity(BANS_MAX), 1000, ''), { name: 'TooManyBansError' });
  t.match(await control.ban(identity(1), 1000, 'again'), { reason: 'again' });
  t.equal(await control.unban(identity(1)), true);
  t.equal(await control.unban(identity(1)), false);
  await redis.client.del(rowKey('ban', identity(2).digest));
  await control.ban(identity(BANS_MAX), 1000, '');
  // The store looks for ended bans once a second.
  await until(() => control.ban(identity(1), 1000, 'an ended ban makes room').then(Boolean, () => false));
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
    await control.ban(identity(4), 1000, 'by an operator');
    await control.countDenials(identity(4), long, 1, 'by a policy');
    t.match(await control.banOf(identity(4)), { policy: null }, `${store}: an operator’s shorter ban stays`);
    await control.countDenials(identity(2), long, 1, 'long');
    await control.countDenials(identity(2), short, 1, 'short');
    t.match(await control.banOf(identity(2)), { reason: 'long', policy: 'long' }, store);
    await control.ban(identity(2), 1000, 'by an operator');
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
    await control.ban(identity(1), 60_000, 'the first');
    await control.countDenials(identity(2), BAN, 1, 'too often');
    await control.ban(identity(3), 1, 'short');
    await until(async () => (await control.banOf(identity(3))) === null);
    await control.ban(identity(4), 3_600_000, '');
    await control.ban(identity(5), 60_000, '');
    await control.unban(identity(5));
    const { total, bans: listed } = await control.listBans(10);
    t.equal(total, 3, store);
    t.match(listed, [
      { digest: identity(4).digest, reason: '', policy: null },
      { digest: identity(2).digest, reason: 'too often', policy: 'login' },
      { digest: identity(1).digest, reason: 'the first', policy: null },
    ]);
    t.equal(listed.length, 3);
    t.ok(listed.every(({ endsAt }) => endsAt > Date.now()));
    await control.ban(identity(1), 60_000, 'again');
    const newest = await control.listBans(1);
    t.match(newest, { total: 3, bans: [{ reason: 'again' }] }, store);
    t.equal(newest.bans.length, 1);
  }
});

t.test('what is remembered of denials and past bans is bounded, also in shadow mode', async (t) => {
  const redis = await startRedis(t);
  const control = storeControl(t, redis);
  const ban = { bucket: 'login', after: 2, withinMs: 60_000, forMs: 1, growing: true };
  const keys = () => redis.client.keys('fg:{control}:*');
  for (const reason of ['why', '']) {
    const mode = reason === '' ? 'shadow' : 'enforce';
    for (let i = 0; i < 20; i++) {
      await control.countDenials(identity(i), ban, 1, reason);
      await control.countDenials(identity(i + 100), ban, 2, reason);
    }
    const denials = (await keys()).filter((key) => key.includes(':denials:'));
    t.equal(denials.length, mode === 'shadow' ? 40 : 20, `${mode}: one key for each unbanned client`);
    for (const key of denials) {
      const ms = await redis.client.pttl(key);
      t.ok(ms > 0 && ms <= ban.withinMs, `${mode}: the key expires with its denials`);
    }
    const past = (await keys()).filter((key) => key.includes('past-bans'));
    t.equal(past.length, mode === 'shadow' ? 2 : 1, `${mode}: past bans have no key for each client`);

    const key = pastBansKey(mode === 'shadow');
    const many = Array.from({ length: PAST_BANS_MAX - 20 }, (_, i) => `old-${i}`);
    await redis.client.zadd(key, ...many.flatMap((name, i) => [i + 1, name]));
    await control.countDenials(identity(200), ban, 2, reason);
    t.equal(await redis.client.zcard(key), PAST_BANS_MAX, mode);
    t.equal(await redis.client.zscore(key, 'old-0'), null, 'the oldest is dropped');
    t.equal(await redis.client.zscore(key, 'old-1'), '2');
    t.equal(await control.countDenials(identity(100), ban, 2, reason), 2, 'other entries still grow');
    t.ok((await redis.client.pttl(key)) > 7 * 86_400_000);
    t.comment(`${mode}: ${await redis.client.call('MEMORY', 'USAGE', key, 'SAMPLES', '0')} bytes`);
  }
  for (const growing of [true, false]) {
    const [fast, week] = [{ ...ban, bucket: `fast ${growing}`, growing }, 7 * 86_400_000];
    t.equal(await control.countDenials(identity(1), fast, 2, ''), 1);
    await until(async () => (await control.countDenials(identity(1), fast, 2, '')) === (growing ? 2 : 1));
    const score = (Date.now() - week - 1000) * 32 + 5;
    await redis.client.zadd(pastBansKey(true), score, `${identity(1).digest} ${fast.bucket}`);
    t.equal(await control.countDenials(identity(1), fast, 2, ''), 1, 'past bans are dropped after a week');
  }
});

t.test('policies leave room for operators', async (t) => {
  const redis = await startRedis(t);
  const control = storeControl(t, redis);
  await addBans(redis, POLICY_BANS_MAX);
  await t.rejects(control.countDenials(identity(BANS_MAX), BAN, 1, 'why'), { message: /9000 bans/ });
  await control.ban(identity(BANS_MAX), 1000, 'by an operator');
});

t.test('in memory: a shadow ends by itself, and their number is bounded', async (t) => {
  let now = 1_000_000;
  let changes = 0;
  const shadows = new Shadows({ clock: () => now, onChange: () => changes++ });
  t.teardown(() => shadows.close());
  const control = memoryControl(() => now, new Rows(new Bans(), shadows));
  t.equal(await control.shadow('a', 60_000), now + 60_000);
  t.equal(await control.shadow('a', 90_000), now + 90_000, 'the later call takes precedence');
  t.equal(changes, 1, 'a longer shadow changes no decision');
  t.equal(await control.unshadow('a'), true);
  t.equal(await control.unshadow('a'), false);
  t.equal(changes, 2);
  for (let i = 0; i < SHADOWS_MAX; i++) await control.shadow(`b${i}`, 60_000);
  await t.rejects(control.shadow('one more', 1000), { name: 'TooManyShadowsError' });
  await control.shadow('b0', 90_000);
  now += 60_000;
  shadows.replace(new Map(shadows.endsAt));
  t.strictSame([...(await control.shadows()).keys()], ['b0']);

  await control.shadow('short', 20);
  now += 30;
  await until(() => !shadows.endsAt.has('short'));
});

t.test('in the store: a shadow ends by itself, and their number is bounded', async (t) => {
  const redis = await startRedis(t);
  const control = new StoreControl(accessTo(redis.url), '', Date.now);
  t.teardown(() => control.close());
  const before = Date.now();
  const endsAt = await control.shadow('a', 60_000);
  t.ok(endsAt >= before + 60_000);
  t.strictSame([...(await control.shadows())], [['a', endsAt]]);
  t.equal(await control.unshadow('a'), true);
  t.equal(await control.unshadow('a'), false);
  for (let i = 0; i < SHADOWS_MAX; i++) await control.shadow(`b${i}`, 60_000);
  await t.rejects(control.shadow('one more', 1000), { name: 'TooManyShadowsError' });
  await control.shadow('b0', 1);
  await until(async () => (await control.shadows()).size === SHADOWS_MAX - 1);
  await control.shadow('one more', 1000);
  t.ok((await redis.client.pttl(rowKey('shadow', 'b1'))) <= 60_000);
});
