/** Bounds and ends of what operators do by hand. */
import t from 'tap';
import { BANS_MAX, Bans } from '#gateway/control/bans.ts';
import { Limited } from '#gateway/control/limited.ts';
import { MemoryControl } from '#gateway/control/memory-control.ts';
import { StoreControl } from '#gateway/control/store-control.ts';
import { identityOf } from '#gateway/identity/digest.ts';
import { KnownCounters } from '#gateway/limiter/known-counters.ts';
import { startRedis } from '#test/support/redis.ts';
import { accessTo } from '#test/support/store.ts';

const identity = (number: number) => identityOf(String(number).padStart(21, 'x').concat('A'));

t.test('in memory: a ban ends, and their number is bounded', async (t) => {
  let now = 1_000_000;
  const bans = new Bans();
  const known = new KnownCounters({ countersMax: 16, credentialsMax: 16 });
  const control = new MemoryControl({ clock: () => now, known, bans, salt: '' });
  await control.ban(identity(1), 1000, 'why');
  t.strictSame(await control.banOf(identity(1)), { endsAt: now + 1000, reason: 'why' });
  now += 1000;
  t.equal(await control.banOf(identity(1)), null);
  t.equal(bans.size, 0, 'nothing is asked of requests any more');
  for (let i = 0; i < BANS_MAX; i++) await control.ban(identity(i), 1000, '');
  await t.rejects(control.ban(identity(BANS_MAX), 1000, ''), { name: 'TooManyBansError' });
  await control.ban(identity(0), 2000, 'longer');
  now += 1000;
  await control.ban(identity(BANS_MAX), 1000, '');
  t.equal(bans.size, 2, 'those that ended make room');
});

t.test('in the store: all keys expire, and the number of bans is bounded', async (t) => {
  const redis = await startRedis();
  t.teardown(() => redis.close());
  const control = new StoreControl(accessTo(redis.url), 'salt');
  t.teardown(() => control.close());
  await control.ban(identity(1), 60_000, 'why');
  await control.reset(identity(1), []);
  const keys = await redis.client.keys('*');
  t.equal(keys.length, 4);
  for (const key of keys) {
    t.match(key, /^fg:\{control\}:/);
    t.ok((await redis.client.pttl(key)) > 0, `${key} expires`);
  }
  const many = Array.from({ length: BANS_MAX }, (_, i) => [Date.now() + 60_000, identity(i).digest]).flat();
  await redis.client.zadd('fg:{control}:bans', ...many);
  await t.rejects(control.ban(identity(BANS_MAX), 1000, ''), { name: 'TooManyBansError' });
  t.match(await control.ban(identity(1), 1000, 'again'), { reason: 'again' });
  t.equal(await control.unban(identity(1)), true);
  t.equal(await control.unban(identity(1)), false);
});

t.test('denied identities are counted while somebody looks, in a bounded table', async (t) => {
  const limited = new Limited();
  t.notOk(limited.isWatched(0));
  limited.watch(0);
  t.ok(limited.isWatched(14_999));
  t.notOk(limited.isWatched(15_000));
  for (let i = 0; i < 5000; i++) {
    limited.count('often');
    limited.count(String(i));
  }
  const top = limited.watch(0);
  t.equal(top.length, 128);
  t.match(top[0], { identity: 'often', denied: 5000 });
});
