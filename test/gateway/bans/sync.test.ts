/** Tests that several processes agree on bans, shadows and resets, whatever the store loses, and when. */
import assert from 'node:assert/strict';
import t, { type Test } from 'tap';
import type { Row } from '#gateway/bans/rows.ts';
import { CONTROL_KEYS, ROWS_KEY, VERSIONS_KEY, VERSIONS_MAX } from '#gateway/bans/scripts.ts';
import { Sync } from '#gateway/bans/sync.ts';
import { identityOf } from '#gateway/identity/digest.ts';
import { Bucket } from '#gateway/limiter/charge.ts';
import { fc } from '#test/support/fast-check.ts';
import { type RedisServer, startRedis } from '#test/support/redis.ts';
import { part, policy } from '#test/support/spend.ts';
import { storeAt } from '#test/support/store.ts';
import { BAN, identity, newKnown, newRows, storeControl } from './world.ts';

/** Numbers of the clients that the tests below ban, the last one by a policy. */
const CLIENTS = [1, 2, 3, 4];
const BY_POLICY = 4;

/** Copies all that the store has. @returns a function that puts the store back to this state */
async function copyOf({ client }: RedisServer): Promise<() => Promise<void>> {
  const before = new Map<string, Buffer>();
  for (const key of await client.keys('*')) before.set(key, await client.dumpBuffer(key));
  return async () => {
    await client.flushall();
    for (const [key, dump] of before) await client.restore(key, 600_000, dump);
  };
}

/** The state of one gateway. It asks the store when the test tells it to. */
async function startReplica(t: Test, url: string, clock = Date.now) {
  const rows = newRows(t, clock);
  const { bans } = rows;
  const known = newKnown();
  const bucket = new Bucket(part(policy('one', 1, 60)).counter, identity(1_000_000));
  // A busy machine may need seconds for the answer with all bans.
  const connection = storeAt(t, url, { silenceMs: 600_000 });
  await connection.connect();
  const sync = new Sync({ connection, clock, known, rows, counters: () => [] });
  sync.stop();
  return {
    ask: () => sync.start(),
    remember: () => known.set(bucket, { at: 1000, a: 1, b: 0 }),
    /** Whether the process has forgotten a counter that no operator has cleared. */
    hasForgotten: () => known.state(bucket, 1000).a === 0,
    learn: (row: Row) => sync.apply(row),
    bans,
    bannedOnes: () => CLIENTS.filter((one) => bans.of(identity(one).digest, clock()) !== null),
    shadows: () => [...rows.shadows.keys()].sort(),
  };
}

t.test('a process that missed too many changes, or others than the store had, reads all', async (t) => {
  const redis = await startRedis(t);
  const control = storeControl(t, redis);
  const replica = await startReplica(t, redis.url);
  await replica.ask();
  replica.remember();
  await control.ban(identity(1), 3_600_000, 'the first');
  await replica.ask();
  t.strictSame(replica.bannedOnes(), [1]);
  t.notOk(replica.hasForgotten(), 'it has missed nothing of an empty store');

  // A failover lost the first ban, and a later change has a higher version.
  await redis.client.flushall();
  await control.ban(identity(2), 3_600_000, 'the second');
  await replica.ask();
  t.strictSame(replica.bannedOnes(), [1, 2]);
  t.match(await control.banOf(identity(1)), { reason: 'the first' }, 'the store has the first ban again');
  t.match(
    await control.listBans(1),
    { total: 2, bans: [{ reason: 'the second' }] },
    'the newest is still first',
  );

  await control.ban(identity(3), 3_600_000, 'the third');
  await control.unban(identity(2));
  replica.remember();
  for (let i = 0; i <= VERSIONS_MAX; i++) await control.reset(identity(i + 10), []);
  await replica.ask();
  t.equal(await redis.client.zcard(VERSIONS_KEY), VERSIONS_MAX, 'bounded, and nothing was put back again');
  t.strictSame(replica.bannedOnes(), [1, 3], 'the lifted ban does not come back');
  t.ok(replica.hasForgotten(), 'of too many changes, a process forgets all counters');
});

t.test('a store that has evicted one of its keys gets the rows back', async (t) => {
  const redis = await startRedis(t);
  const control = storeControl(t, redis);
  const replica = await startReplica(t, redis.url);
  await control.ban(identity(1), 3_600_000, 'why');
  await replica.ask();
  for (const key of CONTROL_KEYS) {
    await redis.client.del(key);
    await control.ban(identity(2), 3_600_000, 'another one');
    await replica.ask();
    t.not(await control.banOf(identity(1)), null, key);
  }
});

t.test('a ban keeps its end when a process with another clock puts it back', async (t) => {
  const redis = await startRedis(t);
  const control = storeControl(t, redis);
  for (const hours of [-5, 5]) {
    const replica = await startReplica(t, redis.url, () => Date.now() + hours * 3_600_000);
    await control.ban(identity(1), 1_000_000, 'why');
    await replica.ask();
    t.strictSame(replica.bannedOnes(), [1]);
    await redis.client.flushall();
    await replica.ask();
    const text = await redis.client.hget(ROWS_KEY, `ban ${identity(1).digest}`);
    const ms = Number(text?.split(' ', 1)) - Date.now();
    t.ok(ms > 900_000 && ms <= 1_000_010, `${ms} ms are left with a clock ${hours} hours ahead`);
  }
});

t.test('the last change of each ban and shadow holds, whatever the store loses and when', async (t) => {
  const redis = await startRedis(t);
  const { client } = redis;
  const controls = [0, 1].map(() => {
    const changes: Row[] = [];
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

t.test('a late answer of another node of a Cluster does not undo a reset', async (t) => {
  const redis = await startRedis(t);
  const connection = storeAt(t, redis.url);
  await connection.connect();
  const known = newKnown();
  const { counter } = part(policy('one', 1, 60));
  const bucket = new Bucket(counter, identityOf('x'.repeat(21).concat('A')));
  const sync = new Sync({ connection, clock: Date.now, known, rows: newRows(t), counters: () => [counter] });
  const control = storeControl(t, redis, (row) => sync.apply(row));
  const remember = (): void => known.set(bucket, { at: 1000, a: 1, b: 0 });
  const used = (): number => known.state(bucket, 1000).a;
  // The first change of a store makes a process forget all counters.
  await control.unban(bucket.identity);

  remember();
  await control.reset(bucket.identity, [counter]);
  t.equal(used(), 0);
  remember();
  await sync.poll();
  t.equal(used(), 0, 'forgotten again');
  remember();
  await sync.poll();
  t.equal(used(), 1, 'a later state stays');
  await redis.kill();
  const endsAt = Date.now() + 86_400_000;
  await sync.apply({ kind: 'counters', name: bucket.identity.digest, endsAt, note: null, version: 1 });
  t.equal(used(), 0, 'forgotten although the store does not answer');
});
