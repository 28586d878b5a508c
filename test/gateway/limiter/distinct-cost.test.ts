/**
 * The time that Redis spends on a request whose different values are counted. It must not grow with the number of values
 * that the client has used, because Redis serves all clients, one script at a time.
 *
 * Redis measures its own work. Of many rounds the fastest one counts, because other processes can only make one slower.
 */
import t from 'tap';
import { type PendingCheck, scriptCall } from '#gateway/limiter/check.ts';
import { SPEND } from '#gateway/limiter/script.ts';
import { type RedisServer, startRedis } from '#test/support/redis.ts';
import { chargeOf, part, policy, withValue } from '#test/support/spend.ts';
import { insideLongWindow, LONG_WINDOW_SECONDS } from '#test/support/window.ts';

const ROUNDS = 40;
const CALLS = 50;
const RATIO_MAX = 1.3;
const nobody = { onSpent() {}, onStoreUnavailable() {} };

/** @returns the check of a request with a value, by a client whose limit is this number of values */
function checkOf(limit: number, value: string): PendingCheck {
  const of = policy(`${limit} values`, limit, LONG_WINDOW_SECONDS, { algorithm: 'distinct-fixed-window' });
  return { charge: chargeOf(withValue(part(of), value)), listeners: [nobody], leases: null };
}

async function spend(redis: RedisServer, check: PendingCheck, times = 1): Promise<void> {
  const { keys, args } = scriptCall(Date.now(), [check]);
  const calls = Array.from({ length: times }, () =>
    redis.client.evalsha(SPEND.sha1, keys.length, ...keys, ...args),
  );
  await Promise.all(calls);
}

/** @returns microseconds of Redis for one call */
async function timeOf(redis: RedisServer, check: PendingCheck): Promise<number> {
  await redis.client.config('RESETSTAT');
  await spend(redis, check, CALLS);
  const stats = await redis.client.info('commandstats');
  return Number(/cmdstat_evalsha:.*usec_per_call=([\d.]+)/.exec(stats)?.[1]);
}

t.test('a request at 1,000 values costs what one costs at 10', async (t) => {
  await insideLongWindow();
  const redis = await startRedis(t);
  await redis.client.script('LOAD', SPEND.lua);
  const sizes = [10, 300, 1000];
  for (const size of sizes) for (let i = 0; i < size; i++) await spend(redis, checkOf(size, `value ${i}`));
  const valuesOf = (size: number) => ({ first: 'value 0', last: `value ${size - 1}`, new: 'a new value' });
  const fastest = new Map<string, number>();
  for (let round = 0; round < ROUNDS; round++)
    for (const size of sizes)
      for (const [which, value] of Object.entries(valuesOf(size))) {
        const name = `${which} of ${size}`;
        const time = await timeOf(redis, checkOf(size, value));
        fastest.set(name, Math.min(time, fastest.get(name) ?? Number.POSITIVE_INFINITY));
      }
  const timeFor = (name: string): number => {
    const time = fastest.get(name) ?? 0;
    t.ok(time > 0, `${name}: ${time} microseconds`);
    return time;
  };
  for (const which of Object.keys(valuesOf(0)))
    for (const size of [300, 1000])
      t.ok(timeFor(`${which} of ${size}`) <= RATIO_MAX * timeFor(`${which} of 10`), `${which} of ${size}`);
});
