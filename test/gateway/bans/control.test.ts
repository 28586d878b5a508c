/** Tests bans, shadows and resets: they are bounded, and they end. */
import assert from 'node:assert/strict';
import t, { type Test } from 'tap';
import { BANS_MAX, Bans, POLICY_BANS_MAX } from '#gateway/bans/bans.ts';
import { ChangeFeed } from '#gateway/bans/change-feed.ts';
import type { ControlChange } from '#gateway/bans/control.ts';
import { MemoryControl } from '#gateway/bans/memory-control.ts';
import {
  BANS_KEY,
  entryKey,
  GONE_KEY,
  GONE_MAX,
  PAST_BANS_MAX,
  pastBansKeys,
  SHADOWS_KEY,
  VERSIONS_KEY,
  VERSIONS_MAX,
} from '#gateway/bans/scripts.ts';
import { SHADOWS_MAX, Shadows } from '#gateway/bans/shadows.ts';
import { StoreControl } from '#gateway/bans/store-control.ts';
import { identityOf } from '#gateway/identity/digest.ts';
import { Bucket } from '#gateway/limiter/charge.ts';
import { KnownCounters } from '#gateway/limiter/known-counters.ts';
import type { Clock } from '#shared/clock.ts';
import { fc } from '#test/support/fast-check.ts';
import { type RedisServer, startRedis } from '#test/support/redis.ts';
import { part, policy } from '#test/support/spend.ts';
import { accessTo, storeAt } from '#test/support/store.ts';
import { until } from '#test/support/until.ts';

const identity = (number: number) => identityOf(String(number).padStart(21, 'x').concat('A'));

function storeControl(
  t: Test,
  { url }: RedisServer,
  onChange?: ConstructorParameters<typeof StoreControl>[3],
): StoreControl {
  const control = new StoreControl(accessTo(url), 'salt', Date.now, onChange);
  t.teardown(() => control.close());
  return control;
}

/** Writes bans into the store as if they had been made one after the other. */
async function addBans({ client }: RedisServer, digests: readonly string[], note = '\n'): Promise<void> {
  const pipeline = client.pipeline();
  for (const digest of digests)
    pipeline.set(entryKey(BANS_KEY, digest), `${Date.now() + 3_600_000} ${note}`, 'PX', 3_600_000);
  await pipeline.exec();
  await client.zadd(BANS_KEY, ...digests.flatMap((digest, i) => [i + 1, digest]));
}

function memoryControl(
  clock: Clock,
  bans = new Bans(),
  shadows = new Shadows({ clock, onChange: () => undefined }),
): MemoryControl {
  const known = new KnownCounters({ countersMax: 16, credentialsMax: 16 });
  return new MemoryControl({ clock, known, bans, shadows, salt: '', replica: 'r' });
}

async function bothControls(t: Test) {
  return { memory: memoryControl(Date.now), Redis: storeControl(t, await startRedis(t)) };
}

/** Numbers of the clients that the tests below ban, the last one by a policy. */
const CLIENTS = [1, 2, 3, 4];
const BY_POLICY = 4;

/** The `ban` of a policy that bans for a minute after one denial. */
const BAN = { bucket: 'login', after: 1, withinMs: 60_000, forMs: 60_000, growing: false };

/** Copies all that the store has. @returns a function that puts the store back to this state */
async function copyOf({ client }: RedisServer): Promise<() => Promise<void>> {
  const before = new Map<string, Buffer>();
  for (const key of await client.keys('*')) before.set(key, await client.dumpBuffer(key));
  return async () => {
    await client.flushall();
    for (const [key, dump] of before) await client.restore(key, 600_000, dump);
  };
}

t.test('in memory: a ban ends, and their number is bounded', async (t) => {
  let now = 1_000_000;
  const bans = new Bans();
  const control = memoryControl(() => now, bans);
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
  const bans = new Bans();
  const control = memoryControl(() => now, bans);
  for (let i = 0; i < POLICY_BANS_MAX; i++) {
    const endsAt = now + 10_000 + i;
    const counted = {
      reason: '',
      policy: null,
      get endsAt() {
        looks++;
        return endsAt;
      },
    };
    bans.set(identity(i).digest, counted);
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
  await addBans(
    redis,
    Array.from({ length: BANS_MAX }, (_, i) => identity(i).digest),
  );
  await t.rejects(control.ban(identity(BANS_MAX), 1000, ''), { name: 'TooManyBansError' });
  t.match(await control.ban(identity(1), 1000, 'again'), { reason: 'again' });
  t.equal(await control.unban(identity(1)), true);
  t.equal(await control.unban(identity(1)), false);
  await redis.client.del(entryKey(BANS_KEY, identity(2).digest));
  await control.ban(identity(BANS_MAX), 1000, '');
  await control.ban(identity(1), 1000, 'an ended ban makes room');
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
    t.equal(past.length, mode === 'shadow' ? 4 : 2, `${mode}: past bans have no key for each client`);

    const [order, times] = pastBansKeys(mode === 'shadow');
    const many = Array.from({ length: PAST_BANS_MAX - 20 }, (_, i) => `old-${i}`);
    await redis.client.zadd(order, ...many.flatMap((name, i) => [i + 1, name]));
    await redis.client.hset(times, ...many.flatMap((name) => [name, '1 1']));
    await control.countDenials(identity(200), ban, 2, reason);
    t.equal(await redis.client.zcard(order), PAST_BANS_MAX, mode);
    t.equal(await redis.client.hlen(times), PAST_BANS_MAX);
    t.equal(await redis.client.hexists(times, 'old-0'), 0, 'the oldest is dropped');
    t.equal(await redis.client.hexists(times, 'old-1'), 1);
    t.equal(await control.countDenials(identity(100), ban, 2, reason), 2, 'other entries still grow');
    for (const key of [order, times]) t.ok((await redis.client.pttl(key)) > 7 * 86_400_000);
    t.comment(
      `${mode}: ${await redis.client.call('MEMORY', 'USAGE', order, 'SAMPLES', '0')} and ` +
        `${await redis.client.call('MEMORY', 'USAGE', times, 'SAMPLES', '0')} bytes`,
    );
  }
  for (const growing of [true, false]) {
    const [fast, week] = [{ ...ban, bucket: `fast ${growing}`, growing }, 7 * 86_400_000];
    t.equal(await control.countDenials(identity(1), fast, 2, ''), 1);
    await until(async () => (await control.countDenials(identity(1), fast, 2, '')) === (growing ? 2 : 1));
    const [, times] = pastBansKeys(true);
    await redis.client.hset(times, `${identity(1).digest} ${fast.bucket}`, `${Date.now() - week - 1000} 5`);
    t.equal(await control.countDenials(identity(1), fast, 2, ''), 1, 'past bans are dropped after a week');
  }
});

t.test('policies leave room for operators', async (t) => {
  const redis = await startRedis(t);
  const control = storeControl(t, redis);
  await addBans(
    redis,
    Array.from({ length: POLICY_BANS_MAX }, (_, i) => `${i}`),
  );
  await t.rejects(control.countDenials(identity(3), BAN, 1, 'why'), { message: /9000 bans/ });
  await control.ban(identity(3), 1000, 'by an operator');
});

t.test('in memory: a shadow ends by itself, and their number is bounded', async (t) => {
  let now = 1_000_000;
  let changes = 0;
  const shadows = new Shadows({ clock: () => now, onChange: () => changes++ });
  t.teardown(() => shadows.close());
  const control = memoryControl(() => now, new Bans(), shadows);
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
  t.ok((await redis.client.pttl(entryKey(SHADOWS_KEY, 'b1'))) <= 60_000);
  t.equal(await redis.client.zcard(VERSIONS_KEY), VERSIONS_MAX, 'the oldest versions are forgotten');
});

/** The state of one gateway. It asks the store when the test tells it to. */
async function startReplica(t: Test, url: string) {
  const bans = new Bans();
  const shadows = new Shadows({ clock: Date.now, onChange: () => undefined });
  const known = new KnownCounters({ countersMax: 16, credentialsMax: 16 });
  const bucket = new Bucket(part(policy('one', 1, 60)).counter, identity(1_000_000));
  // A busy machine may need seconds for the answer with all bans.
  const connection = storeAt(t, url, { silenceMs: 600_000 });
  await connection.connect();
  t.teardown(() => shadows.close());
  const feed = new ChangeFeed({ connection, clock: Date.now, known, bans, shadows, counters: () => [] });
  feed.stop();
  const bannedOnes = (): number[] =>
    CLIENTS.filter((one) => bans.endOf(identity(one).digest, Date.now()) > 0);
  return {
    ask: () => feed.start(),
    remember: () => known.set(bucket, { at: 1000, a: 1, b: 0 }),
    /** Whether the process has forgotten a counter that no operator has cleared. */
    hasForgotten: () => known.state(bucket, 1000).a === 0,
    learn: (change: ControlChange) => feed.apply(change),
    bans,
    bannedOnes,
    shadows: () => [...shadows.endsAt.keys()].sort(),
  };
}

t.test('a process reads only changes that it has not read', async (t) => {
  const redis = await startRedis(t);
  const control = storeControl(t, redis);
  const many = Array.from({ length: POLICY_BANS_MAX - 1 }, (_, i) => identity(i + 1000).digest);
  await addBans(redis, many, 'login\npolicy login denied it 50 times within 600 s');
  await control.ban(identity(1), 60_000, 'the first');
  const replica = await startReplica(t, redis.url);
  const sentBytes = async (): Promise<number> =>
    Number(/total_net_output_bytes:(\d+)/.exec(await redis.client.info('stats'))?.[1]);
  /** Counts the bytes that the store sends for the next answer, without those for `info` itself. */
  const bytesOfAnswer = async (): Promise<number> => {
    const [first, second] = [await sentBytes(), await sentBytes()];
    await replica.ask();
    return (await sentBytes()) - second - (second - first);
  };
  const all = await bytesOfAnswer();
  t.equal(replica.bans.size, POLICY_BANS_MAX);
  t.ok(all > 500_000, `reading everything takes ${all} bytes`);

  await control.ban(identity(2), 60_000, 'the second');
  const few = await bytesOfAnswer();
  t.comment(`all bans: ${all} bytes, one more: ${few} bytes`);
  t.ok(few < 1000, `reading one change takes ${few} bytes`);
  t.strictSame(replica.bannedOnes(), [1, 2]);
  t.equal(replica.bans.size, POLICY_BANS_MAX + 1);
  t.match(replica.bans.of(identity(2).digest, Date.now()), { reason: 'the second', policy: null });
  t.match(replica.bans.of(many[0] ?? '', Date.now()), { policy: 'login' });

  await control.shadow('a', 60_000);
  await control.reset(identity(3), []);
  await control.ban(identity(2), 120_000, 'again');
  await redis.client.del(entryKey(BANS_KEY, many[1] ?? ''));
  t.equal(await control.countDenials(identity(1), BAN, 1, 'by a policy'), 60_000);
  t.ok((await bytesOfAnswer()) < 1000);
  t.strictSame([replica.bannedOnes(), replica.shadows()], [[1, 2], ['a']]);
  await control.unban(identity(2));
  t.ok((await bytesOfAnswer()) < 1000);
  t.strictSame(replica.bannedOnes(), [1]);
  await control.unshadow('a');
  await replica.ask();
  t.strictSame(replica.shadows(), []);
  for (const key of await redis.client.keys('fg:{control}:*'))
    t.ok((await redis.client.pttl(key)) > 0, `${key} expires`);
});

t.test('a process that missed too many changes, or others than the store had, reads all', async (t) => {
  const redis = await startRedis(t);
  const control = storeControl(t, redis);
  const replica = await startReplica(t, redis.url);
  await control.ban(identity(1), 60_000, 'the first');
  await replica.ask();
  t.strictSame(replica.bannedOnes(), [1]);

  // A failover lost the first ban, and a later change has a higher version.
  await redis.client.flushall();
  await control.ban(identity(2), 60_000, 'the second');
  await replica.ask();
  t.strictSame(replica.bannedOnes(), [1, 2]);
  t.match(await control.banOf(identity(1)), { reason: 'the first' }, 'the store has the first ban again');
  t.match(
    await control.listBans(1),
    { total: 2, bans: [{ reason: 'the second' }] },
    'the newest is still first',
  );

  await control.ban(identity(3), 60_000, 'the third');
  await control.unban(identity(2));
  for (let i = 0; i < VERSIONS_MAX; i++) await control.ban(identity(1), 60_000, `${i}`);
  t.equal(await redis.client.zcard(VERSIONS_KEY), VERSIONS_MAX, 'the number of versions is bounded');
  await replica.ask();
  t.strictSame(replica.bannedOnes(), [1, 3]);

  for (let i = 0; i < GONE_MAX; i++) await control.reset(identity(i), []);
  t.equal(await redis.client.zcard(GONE_KEY), GONE_MAX);
  replica.remember();
  await replica.ask();
  t.ok(replica.hasForgotten(), 'of too many resets, a process forgets all counters');
});

t.test('the last change of each ban and shadow holds, whatever the store loses and when', async (t) => {
  const redis = await startRedis(t);
  const { client } = redis;
  const controls = [0, 1].map(() => {
    const changes: ControlChange[] = [];
    const control = storeControl(t, redis, async (change) => {
      changes.push(change);
    });
    return { control, changes };
  });
  const step = fc.record({
    what: fc.constantFrom(
      ...[
        'ban',
        'unban',
        'unban',
        'shadow',
        'unshadow',
        'ban by a policy',
        'ask',
        'empty',
        'save',
        'go back',
      ],
    ),
    /** The store is emptied before the process learns of its change. */
    isLost: fc.boolean(),
    at: fc.constantFrom(0, 1, 2),
    client: fc.constantFrom(1, 2, 3),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 4, maxLength: 14 }), async (steps) => {
      await client.flushall();
      // The third one only asks.
      const replicas = [];
      for (let i = 0; i < 3; i++) replicas.push(await startReplica(t, redis.url));
      /** The expected bans, with their reasons and policies. */
      const banned = new Map<number, readonly [string, string | null]>();
      const inShadow = new Set<number>();
      let goBack: (() => Promise<void>) | null = null;
      for (const [number, { what, isLost, at, client: one }] of steps.entries()) {
        const by = controls[at];
        const isChange = ['ban', 'unban', 'shadow', 'unshadow'].includes(what);
        if (isChange && by !== undefined) {
          if (what === 'ban') await by.control.ban(identity(one), 3_600_000, `ban ${number}`);
          else if (what === 'unban') await by.control.unban(identity(one));
          else if (what === 'shadow') await by.control.shadow(String(one), 3_600_000);
          else await by.control.unshadow(String(one));
          if (isLost) await client.flushall();
          for (const change of by.changes.splice(0)) await replicas[at]?.learn(change);
          if (what === 'ban') banned.set(one, [`ban ${number}`, null]);
          if (what === 'unban') banned.delete(one);
          if (what === 'shadow') inShadow.add(one);
          if (what === 'unshadow') inShadow.delete(one);
        } else if (what === 'ban by a policy') {
          await controls[0]?.control.countDenials(identity(BY_POLICY), BAN, 1, 'too often');
          for (const replica of replicas) await replica.ask();
          banned.set(BY_POLICY, ['too often', BAN.bucket]);
        } else if (what === 'ask') await replicas[at]?.ask();
        else if (what === 'empty') await client.flushall();
        else if (what === 'save') goBack = await copyOf(redis);
        else if (what === 'go back') await goBack?.();
      }
      for (let i = 0; i < 3; i++) for (const replica of replicas) await replica.ask();
      const expected = [[...banned.keys()].sort(), [...inShadow].sort().map(String)];
      for (const replica of replicas) assert.deepEqual([replica.bannedOnes(), replica.shadows()], expected);
      for (const one of CLIENTS) {
        const ban = await controls[0]?.control.banOf(identity(one));
        assert.deepEqual(ban === null ? undefined : [ban?.reason, ban?.policy], banned.get(one));
      }
      for (const key of await client.keys('fg:{control}:*')) assert.ok((await client.pttl(key)) > 0, key);
    }),
    { numRuns: 100 },
  );
});
