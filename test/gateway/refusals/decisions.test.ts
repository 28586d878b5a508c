/** Tests which of many refusals are stored. */
import t from 'tap';
import { Bucket } from '#gateway/limiter/charge.ts';
import type { DecisionRecord, DecisionStore } from '#gateway/refusals/decision-record.ts';
import { DECISIONS_MAX } from '#gateway/refusals/decision-record.ts';
import { Decisions } from '#gateway/refusals/decisions.ts';
import { MemoryDecisions } from '#gateway/refusals/memory-decisions.ts';
import { reasonOf } from '#gateway/refusals/reasons.ts';
import { RedisDecisions } from '#gateway/refusals/redis-decisions.ts';
import type { Recorded } from '#gateway/refusals/refusal.ts';
import { limitRefusal } from '#gateway/refusals/refusal.ts';
import { startRedis } from '#test/support/redis.ts';
import { identity, part, policy } from '#test/support/spend.ts';
import { accessTo } from '#test/support/store.ts';
import { until } from '#test/support/until.ts';

const NOW = 1_800_000_000_000;
const five = policy('five', 5, 60);

function refusal(of: Bucket): Recorded {
  const { policy, capacity, limit } = of;
  const violation = { policy, capacity, limit, remaining: 0, resetMs: 60_000, bucket: of, used: 5, share: 5 };
  const violated = [{ ...violation, canNeverPass: false }];
  const refused = limitRefusal(violated, [], 'memory', null);
  const recorded = reasonOf(refused).record?.(refused, { identity: () => identity('nobody') }) ?? null;
  if (recorded === null) throw new Error('a denial has a record');
  return recorded;
}

const refused = () => ({
  method: 'GET',
  target: `/${'a'.repeat(300)}?secret`,
  addressFrom: 'socket',
  file: 'f.yaml',
});

function record(id: string): DecisionRecord {
  return { id, at: new Date(NOW).toISOString() } as DecisionRecord;
}

/** Stores the records, or refuses them. */
class Shelf implements DecisionStore {
  readonly batches: (readonly DecisionRecord[])[] = [];
  isDown = false;

  async write(records: readonly DecisionRecord[]): Promise<void> {
    if (this.isDown) throw new Error('down');
    this.batches.push(records);
  }

  async find(): Promise<null> {
    return null;
  }

  async list(): Promise<[]> {
    return [];
  }

  async exchangeDenied(): Promise<[]> {
    return [];
  }

  close(): void {}
}

function decisions(store: DecisionStore, wallClock = () => NOW): Decisions {
  return new Decisions({
    store,
    isStoreUsed: () => true,
    wallClock,
    policyVersion: () => '0',
    replica: 'r',
  });
}

t.test('keeps the refusals of clients with few of them, and a sample of the others', async (t) => {
  const shelf = new Shelf();
  const all = decisions(shelf);
  const one = part(five);
  const loud = refusal(one);
  const quiet: string[] = [];
  for (let i = 0; i < 10_000; i++) {
    all.add(loud, refused);
    const other = refusal(new Bucket(one.counter, identity(`quiet ${i % 1000}`)));
    if (i % 1000 < 10) quiet.push(all.add(other, refused));
  }
  t.equal(quiet.length, 100);
  for (const id of quiet) t.not(await all.find(id), null, 'each denial of another client is recorded');
  await until(() => shelf.batches.length > 0);
  t.ok(shelf.batches[0] !== undefined && shelf.batches[0].length <= 120);
  t.equal(all.unrecorded, 10_100 - (shelf.batches[0]?.length ?? 0));
  t.match(shelf.batches[0]?.[0], {
    path: `/${'a'.repeat(199)}`,
    identity: one.identity.digest,
    violated: ['five'],
  });
  await all.close();
});

t.test(
  'in a flood the newest record is of this second, and the records stand for all refusals',
  async (t) => {
    const shelf = new Shelf();
    let now = NOW;
    const all = decisions(shelf, () => now);
    const one = part(five);
    const records = (): readonly DecisionRecord[] => shelf.batches.flat();
    const ids: string[] = [];
    for (let second = 0; second < 70; second++) {
      for (let i = 0; i < 300; i++) ids.push(all.add(refusal(one), refused));
      await until(() => records().at(-1)?.at === new Date(now).toISOString(), `a record of second ${second}`);
      now += 1000;
    }
    const sum = records().reduce((total, { refusals = 1 }) => total + refusals, 0);
    t.equal(sum, ids.length);
    t.equal(records().length + all.unrecorded, ids.length);
    t.strictSame(
      records()
        .slice(0, 10)
        .map(({ id }) => id),
      ids.slice(0, 10),
      'the first ten are there',
    );
    t.equal(records().at(-1)?.id, ids.at(-1), 'and the last one');
    t.ok(records().length <= 70 + 20, `${records().length} records`);
    for (let i = 0; i < 20; i++) all.add(refusal(one), refused);
    await all.close();
    t.equal(
      records().reduce((total, { refusals = 1 }) => total + refusals, 0),
      ids.length + 20,
      'closing writes the rest',
    );
  },
);

t.test('the process keeps the newest records', async (t) => {
  const at = { now: NOW };
  const memory = new MemoryDecisions(() => at.now);
  await memory.write(Array.from({ length: DECISIONS_MAX + 5 }, (_, i) => record(String(i))));
  t.equal(await memory.find('4'), null);
  t.match(await memory.find('5'), { id: '5' });
  at.now += 86_400_000;
  t.equal(await memory.find('5'), null, 'a record is dropped after a day');
});

t.test('Redis keeps the newest records', async (t) => {
  const redis = await startRedis(t);
  const store = new RedisDecisions(accessTo(redis.url));
  t.teardown(() => store.close());
  for (let i = 0; i <= DECISIONS_MAX; i += 1000)
    await store.write(Array.from({ length: 1000 }, (_, j) => record(String(i + j).padStart(6, '0'))));
  t.equal(await redis.client.hlen('fg:{decisions}:records'), DECISIONS_MAX);
  t.equal(await redis.client.zcard('fg:{decisions}:order'), DECISIONS_MAX);
  t.match(await store.find('010999'), { id: '010999' });

  // The oldest record becomes a day old.
  const [oldest] = await redis.client.zrevrange('fg:{decisions}:order', 0, 0);
  await redis.client.zadd('fg:{decisions}:order', 1, oldest ?? '');
  await store.write([record('new')]);
  t.equal(await store.find(oldest ?? ''), null);
  t.match(await store.find('new'), { id: 'new' });
});
