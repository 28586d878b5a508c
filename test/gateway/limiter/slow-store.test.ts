/** A slow store makes replies slow, not wrong: every window admits exactly its limit. */
import { setImmediate as turn } from 'node:timers/promises';
import t, { type Test } from 'tap';
import type { Bucket } from '#gateway/limiter/charge.ts';
import type { GuardedLimiter } from '#gateway/limiter/outage.ts';
import { startLimiter } from '#test/support/guarded-limiter.ts';
import { type RedisServer, startRedis } from '#test/support/redis.ts';
import { seededRandom } from '#test/support/seed.ts';
import { everyHundredth, startSlowProxy } from '#test/support/slow-proxy.ts';
import { burst, chargeOf, part, policy, spend } from '#test/support/spend.ts';
import { until } from '#test/support/until.ts';
import { insideLongWindow, LONG_WINDOW_SECONDS } from '#test/support/window.ts';

const LIMIT = 100;
/** The default of timeout_ms in GATEWAY_REDIS_URL. */
const BUDGET_MS = 50;
/**
 * No delay of these tests takes so long, also on a busy machine.
 */
const PATIENT_MS = 1000;

const long = (name: string, limit: number) => policy(name, limit, LONG_WINDOW_SECONDS);

/** Starts gateways, each with its own clock and connection, and waits until all know each other. */
async function gateways(
  t: Test,
  url: string,
  count: number,
  budgetMs: number,
): Promise<readonly GuardedLimiter[]> {
  const all: GuardedLimiter[] = [];
  for (let i = 0; i < count; i++) all.push(await startLimiter(t, url, { budgetMs }));
  await until(() => all.every((one) => one.stats().replicas === count));
  return all;
}

/** Sends more requests than the limit, a few at a time from every gateway. @returns the number of admitted requests */
async function fill(all: readonly GuardedLimiter[], who: string): Promise<number> {
  // With an open circuit every request is decided at once, so the store must get time to answer.
  await turn();
  const charge = chargeOf(part(long('p', LIMIT), who));
  const each = Math.ceil((1.5 * LIMIT) / all.length / 5);
  let admitted = 0;
  await Promise.all(
    all.map(async (limiter) => {
      for (let i = 0; i < each; i++) {
        const passed = await burst(limiter, charge, 5);
        admitted += passed;
      }
    }),
  );
  return admitted;
}

function isExact(t: Test, all: readonly GuardedLimiter[], admitted: readonly number[]): void {
  const wrong = admitted.filter((count) => count !== LIMIT);
  t.strictSame(wrong, [], `${admitted.length} windows admit exactly their limit`);
  for (const one of all) t.match(one.stats(), { outages: 0, degraded: 0 }, 'late answers cause no outage');
}

/** Reads the store's count. */
async function counted(redis: Pick<RedisServer, 'client'>, key: string): Promise<number> {
  return Number((await redis.client.get(key)) ?? 0) % 2 ** 32;
}

t.test('every hundredth answer is 30 to 300 ms late, four gateways: windows are exact', async (t) => {
  const redis = await startRedis(t);
  const proxy = await startSlowProxy(t, redis.port, everyHundredth(seededRandom(4)));
  await insideLongWindow();
  const all = await gateways(t, `redis://127.0.0.1:${proxy.port}`, 4, PATIENT_MS);
  const admitted: number[] = [];
  for (let window = 0; proxy.delayed < 12 && window < 200; window++)
    admitted.push(await fill(all, `window-${window}`));
  isExact(t, all, admitted);
});

t.test('a request in flight when the store went away is charged at most twice', async (t) => {
  const redis = await startRedis(t);
  await insideLongWindow();
  const limiter = await startLimiter(t, redis.url, { budgetMs: BUDGET_MS });
  const [local, strict, free] = (['local', 'deny', 'allow'] as const).map((onStoreFailure) =>
    part(policy(onStoreFailure, 10, LONG_WINDOW_SECONDS, { onStoreFailure }), 'late'),
  ) as [Bucket, Bucket, Bucket];
  redis.freeze();
  t.teardown(() => redis.thaw());
  const asked = [local, strict, free].map((one) => spend(limiter, chargeOf(one)));
  t.match(await Promise.all(asked), [{ admitted: true }, { kind: 'unavailable' }, { admitted: true }]);
  t.equal(await burst(limiter, chargeOf(local), 3), 3, 'three more without the store');
  redis.thaw();
  await until(() => limiter.stats().available);
  t.equal(await counted(redis, local.key), 5, 'by the store and here, and the others once');
  t.equal(await counted(redis, strict.key), 1, 'by the store, although it was refused');
  t.equal(await counted(redis, free.key), 1);
});

t.test('a stall of this process and of the store, longer than a wait, is no outage', async (t) => {
  const redis = await startRedis(t);
  const budgetMs = 300;
  const limiter = await startLimiter(t, redis.url, { budgetMs });
  redis.freeze();
  t.teardown(() => redis.thaw());
  const asked = spend(limiter, chargeOf(part(long('p', LIMIT), 'stalled')));
  // The call is sent before this process stalls.
  await turn();
  await turn();
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 13 * budgetMs);
  redis.thaw();
  t.match(await asked, { admitted: true, spent: { isLocal: false } });
  t.match(limiter.stats(), { outages: 0, failures: { timeout: 0, disconnected: 0 } });
});
