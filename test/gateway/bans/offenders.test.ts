/** Denials that wait for the store: none counts twice, and none counts after `within`. */
import t, { type Test } from 'tap';
import { Offenders } from '#gateway/bans/offenders.ts';
import { denialsKey } from '#gateway/bans/scripts.ts';
import { StoreControl } from '#gateway/bans/store-control.ts';
import { identityOf } from '#gateway/identity/digest.ts';
import { startRedis } from '#test/support/redis.ts';
import { accessTo } from '#test/support/store.ts';
import { until } from '#test/support/until.ts';

const BAN = { bucket: 'login', after: 1000, withinMs: 600_000, forMs: 3_600_000, growing: false };
const identity = (number: number) => identityOf(String(number).padStart(21, 'x').concat('A'));

async function openOffenders(t: Test) {
  const redis = await startRedis(t);
  const control = new StoreControl(accessTo(redis.url), 'salt', Date.now);
  const state = { now: 1_000_000, warnings: 0 };
  const offenders = new Offenders({
    control,
    onBan: () => undefined,
    clock: () => state.now,
    log: { warn: () => state.warnings++ },
  });
  t.teardown(() => {
    offenders.close();
    control.close();
  });
  const note = (number: number) => offenders.note(BAN, identity(number), 'enforce');
  const countOf = async (number: number) =>
    Number(await redis.client.get(denialsKey(identity(number).digest, BAN.bucket)));
  note(0);
  await until(async () => (await countOf(0)) === 1);
  return { redis, state, note, countOf };
}

t.test('a denial that the store may have counted is not sent again', async (t) => {
  const { redis, state, note, countOf } = await openOffenders(t);
  redis.freeze();
  note(1);
  await until(() => state.warnings === 1);
  redis.thaw();
  note(2);
  await until(async () => (await countOf(2)) === 1);
  t.ok((await countOf(1)) <= 1);
});

t.test('denials that waited longer than `within` no longer count', async (t) => {
  const { redis, state, note, countOf } = await openOffenders(t);
  await redis.kill();
  note(1);
  note(2);
  note(2);
  await until(() => state.warnings === 1);
  state.now += BAN.withinMs / 2;
  note(2);
  state.now += BAN.withinMs / 2;
  note(3);
  note(1);
  await redis.restart();
  await until(async () => (await countOf(3)) === 1);
  t.equal(await countOf(1), 1, 'only the later denial counts');
  t.equal(await countOf(2), 0);
});
