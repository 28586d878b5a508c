import t, { type Test } from 'tap';
import type { Charge } from '#gateway/limiter/charge.ts';
import { decide } from '#gateway/limiter/decision.ts';
import type { GuardedLimiter, GuardedLimiterOptions } from '#gateway/limiter/outage.ts';
import type { OnStoreFailure } from '#gateway/policy/policy.ts';
import { testClock } from '#test/support/clock.ts';
import { processClock, startLimiter } from '#test/support/guarded-limiter.ts';
import { startRedis } from '#test/support/redis.ts';
import { startRelay } from '#test/support/relay.ts';
import { burst, chargeOf, identity, part, policy, spend, unproven } from '#test/support/spend.ts';
import { STORE_BUDGET_MS } from '#test/support/store-budget.ts';
import { until } from '#test/support/until.ts';
import { insideLongWindow, LONG_WINDOW_SECONDS } from '#test/support/window.ts';

interface Guarded {
  readonly limiter: GuardedLimiter;
  readonly log: string[];
}

async function guarded(t: Test, url: string, more: Partial<GuardedLimiterOptions> = {}): Promise<Guarded> {
  const log: string[] = [];
  const limiter = await startLimiter(t, url, {
    log: { warn: (_, message) => log.push(message), info: (_, message) => log.push(message) },
    budgetMs: 50,
    ...more,
  });
  return { limiter, log };
}

let count = 0;
const fresh = (limit: number, onStoreFailure: OnStoreFailure): Charge =>
  chargeOf(part(policy('p', limit, LONG_WINDOW_SECONDS, { onStoreFailure }), `outage-${++count}`));

/** A proxy in front of a store. Once switched, it replies to every chunk with given bytes. */
async function startGarbler(t: Test, port: number, reply: string): Promise<{ url: string; garble(): void }> {
  let isGarbling = false;
  const relay = await startRelay(t, port, (near, far) => {
    near.on('data', (chunk) => (isGarbling ? near.write(reply) : far.write(chunk)));
    far.pipe(near);
  });
  return {
    url: `redis://127.0.0.1:${relay}`,
    garble: () => {
      isGarbling = true;
    },
  };
}

const eventually = (what: string, holds: () => Promise<boolean> | boolean): Promise<void> =>
  until(holds, what);

/** With a budget of 50 ms a slow machine misses some checks. */
const untilStoreCounts = (limiter: GuardedLimiter): Promise<void> =>
  eventually('the store counts', async () => {
    const answer = await spend(limiter, fresh(10, 'local'));
    return answer.kind === 'spent' && !answer.spent.isLocal;
  });

t.test(
  'Redis killed: each policy decides by its onStoreFailure, and the store is used again when it is back',
  async (t) => {
    const redis = await startRedis(t);
    const { limiter, log } = await guarded(t, redis.url);
    await insideLongWindow();
    const before = fresh(10, 'local');
    t.equal(await burst(limiter, before, 15), 10);

    await redis.kill();
    await eventually('noticed', async () => {
      const answer = await spend(limiter, fresh(1, 'local'));
      return answer.kind === 'spent' && answer.spent.isLocal;
    });
    t.equal(await burst(limiter, fresh(10, 'local'), 25), 10, 'local: the process keeps the limit');
    t.equal(await burst(limiter, fresh(10, 'allow'), 25), 25, 'allow: nothing is counted');
    const denied = await spend(limiter, fresh(10, 'deny'));
    t.equal(denied.kind, 'unavailable', 'deny: every request is refused');
    const mixed = chargeOf(...fresh(3, 'allow').buckets, ...fresh(5, 'local').buckets);
    t.equal(await burst(limiter, mixed, 9), 5, 'mixed: the local policy still counts');
    const shadow = chargeOf(
      part(policy('s', 1, LONG_WINDOW_SECONDS, { mode: 'shadow', onStoreFailure: 'deny' })),
    );
    t.equal(await burst(limiter, shadow, 4), 4, 'a shadow policy does not deny');
    const mark = chargeOf(
      part(policy('m', 2, LONG_WINDOW_SECONDS, { mode: 'mark', onStoreFailure: 'local' })),
    );
    const marks: number[] = [];
    for (let i = 0; i < 4; i++) {
      const answer = await spend(limiter, mark);
      if (answer.kind !== 'spent') throw new Error('a marking policy does not deny');
      const decision = decide(answer.spent, answer.position);
      if (decision.kind === 'allow') marks.push(decision.marks.length);
    }
    t.strictSame(marks, [0, 0, 1, 1], 'the process goes on marking');
    const unknown = chargeOf(...unproven(policy('k', 4, LONG_WINDOW_SECONDS), 'key', 'address'));
    t.equal(await burst(limiter, unknown, 9), 4, 'unproven credentials are counted with their address');
    t.equal(limiter.stats().available, false);

    await redis.restart();
    await eventually('recovered', () => limiter.stats().available);
    const after = await spend(limiter, fresh(10, 'local'));
    t.match(after, { kind: 'spent', admitted: true, spent: { isLocal: false } });
    t.equal(
      await burst(limiter, fresh(10, 'local'), 15),
      10,
      'the limit is exact again, on a Redis that never saw the script',
    );
    t.equal(log.filter((line) => line.includes('unavailable')).length, 1, 'the outage is logged once');
    t.equal(log.filter((line) => line.includes('available again')).length, 1, 'its end is logged once');
  },
);

t.test('Redis full: an out-of-memory reply counts as a failure', async (t) => {
  const redis = await startRedis(t, ['--maxmemory', '3mb', '--maxmemory-policy', 'noeviction']);
  const { limiter } = await guarded(t, redis.url);
  await untilStoreCounts(limiter);
  await redis.client.config('SET', 'maxmemory', '1');
  await eventually('open', async () => {
    const answer = await spend(limiter, fresh(10, 'local'));
    t.equal(answer.kind, 'spent');
    return !limiter.stats().available;
  });
  t.ok(limiter.stats().failures['out-of-memory'] >= 1);
  await redis.client.config('SET', 'maxmemory', '0');
  await eventually('recovered', () => limiter.stats().available);
});

t.test('without the store a known proven key stays proven', async (t) => {
  const redis = await startRedis(t);
  const clock = testClock(Date.now());
  const { limiter } = await guarded(t, redis.url, { clock: clock.now });
  limiter.prove(identity('good'));
  limiter.prove(identity('refused'));
  clock.advance(7_200_000);
  t.notOk(limiter.isProven(identity('good')), 'the store is asked about the key again');
  await redis.kill();
  await until(() => !limiter.stats().available);
  t.ok(limiter.isProven(identity('good')), 'the known proof holds without the store');
  limiter.withdraw(identity('refused'));
  t.notOk(limiter.isProven(identity('refused')));
  clock.advance(30 * 86_400_000);
  t.notOk(limiter.isProven(identity('good')), 'the proof expires after 30 days');
});

t.test(
  'without its store a gateway starts, decides alone, and uses the store once it is available',
  async (t) => {
    const redis = await startRedis(t);
    await redis.kill();
    const salts: string[] = [];
    const { limiter, log } = await guarded(t, redis.url, {
      salt: 'its own',
      onSalt: (salt) => salts.push(salt),
    });
    t.equal(limiter.stats().available, false);
    t.match(log, [/unavailable/]);
    await insideLongWindow();
    t.equal(await burst(limiter, fresh(5, 'local'), 9), 5);
    t.equal((await spend(limiter, fresh(5, 'deny'))).kind, 'unavailable');
    await redis.restart();
    await redis.client.set('fg:{control}:salt', 'of the others');
    await eventually('used', () => limiter.stats().available);
    await eventually('adopted', () => salts.length > 0);
    t.strictSame(salts, ['of the others'], 'all use the salt of the others');
    t.match(await spend(limiter, fresh(5, 'local')), { spent: { isLocal: false } });
  },
);

t.test('a malformed reply counts as a failure', async (t) => {
  const replies = ['+OK', '$5\r\nhello', '$2\r\n[]', '$6\r\n[1,{}]', ':7', '*-1', '$-1'];
  const redis = await startRedis(t);
  for (const reply of replies) {
    const relay = await startGarbler(t, redis.port, `${reply}\r\n`);
    const { limiter } = await guarded(t, relay.url, { budgetMs: 2000 });
    t.match(await spend(limiter, fresh(100, 'local')), { spent: { isLocal: false } });
    relay.garble();
    t.match(await spend(limiter, fresh(100, 'local')), { admitted: true, spent: { isLocal: true } }, reply);
    t.ok(limiter.stats().failures.error >= 1);
    await limiter.close();
  }
});

t.test('after a clock jump nobody is denied beyond the window of the store', async (t) => {
  const redis = await startRedis(t);
  let asleepMs = 0;
  const clock = (): number => performance.timeOrigin + performance.now() - asleepMs;
  const { limiter } = await guarded(t, redis.url, { clock });
  await insideLongWindow();
  const charge = chargeOf(part(policy('p', 1, LONG_WINDOW_SECONDS), 'sleeper'));
  t.equal(await burst(limiter, charge, 2), 1);
  t.ok(limiter.knownExhausted(charge));
  // Simulates a suspend: the monotonic clock stood still, and the store's went on.
  asleepMs = 600_000;
  await eventually('forgotten', () => limiter.knownExhausted(charge) === null);
});

t.test('a start without the store and with a wrong clock: nobody waits for a later window', async (t) => {
  const windowMs = LONG_WINDOW_SECONDS * 1000;
  // Whole windows, so that those of both clocks end at the same moment.
  for (const [how, offMs] of [
    ['behind', -windowMs],
    ['ahead', windowMs],
  ] as const) {
    await t.test(how, async (t) => {
      const redis = await startRedis(t);
      await redis.kill();
      const clock = (): number => processClock() + offMs;
      const { limiter } = await guarded(t, redis.url, { clock, budgetMs: STORE_BUDGET_MS });
      await insideLongWindow();
      const some = fresh(5, 'local');
      const all = fresh(5, 'local');
      const brief = chargeOf(part(policy('brief', 1, 1)));
      t.equal(await burst(limiter, some, 3), 3);
      t.equal(await burst(limiter, all, 6), 5);
      await burst(limiter, brief, 1);
      await redis.restart();
      await eventually('the store is back', () => limiter.stats().available);
      t.equal(await burst(limiter, some, 6), 2, 'the other requests were charged to the store');
      t.equal(await burst(limiter, all, 1), 0);
      await eventually('nobody waits for a later window', () => limiter.knownExhausted(brief) === null);
    });
  }
});
