/** Tests that denials of the same client are sent to the store together, and none of them twice. */
import t from 'tap';
import { Offenders } from '#gateway/bans/offenders.ts';
import { denialsKey } from '#gateway/bans/scripts.ts';
import { startRedis } from '#test/support/redis.ts';
import { until } from '#test/support/until.ts';
import { identity, storeControl } from './world.ts';

const BAN = { bucket: 'login', after: 1000, withinMs: 600_000, forMs: 3_600_000, growing: false };

t.test('a denial counts at most once, whatever becomes of the store', async (t) => {
  const redis = await startRedis(t);
  const control = storeControl(t, redis);
  let warnings = 0;
  const offenders = new Offenders({
    control,
    onBan: () => undefined,
    clock: Date.now,
    log: { warn: () => warnings++ },
  });
  t.teardown(() => offenders.close());
  const note = (number: number) => offenders.note(BAN, identity(number), 'enforce');
  const countOf = async (number: number) =>
    Number(await redis.client.get(denialsKey(`${identity(number).digest} ${BAN.bucket}`)));
  note(0);
  await until(async () => (await countOf(0)) === 1);
  redis.freeze();
  note(1);
  await until(() => warnings === 1);
  redis.thaw();
  note(2);
  await until(async () => (await countOf(2)) === 1);
  t.ok((await countOf(1)) <= 1);
});
