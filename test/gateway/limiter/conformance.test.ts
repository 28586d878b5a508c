/** What every store promises. The same list runs on memory and on a real Redis. */
import t, { type Test } from 'tap';
import {
  effectiveLimit,
  type Limiter,
  rememberExhausted,
  type Spent,
  untilWindowEnd,
} from '#gateway/limiter/limiter.ts';
import { MemoryLimiter } from '#gateway/limiter/memory.ts';
import { GuardedLimiter } from '#gateway/limiter/outage.ts';
import type { Clock } from '#shared/clock.ts';
import { startRedis } from '#test/support/redis.ts';
import { bucket, burst, Charge, policy, proof, spend, windowWithRoom } from '#test/support/spend.ts';

/** The real time: Redis keeps its own clock, so both stores are tested on it. */
const clock: Clock = () => performance.timeOrigin + performance.now();

function conformance(t: Test, limiterOf: (t: Test) => Promise<Limiter>): void {
  let identity = 0;
  const someone = (): string => `someone-${++identity}`;

  t.test('admits exactly the limit, however many ask at once', async (t) => {
    await windowWithRoom(60_000, 3000);
    const limiter = await limiterOf(t);
    for (const limit of [1, 5, 100]) {
      const charge = new Charge([bucket(policy(`p${limit}`, limit, 60), someone())], null);
      t.equal(await burst(limiter, charge, limit * 3), limit, `${limit * 3} asked for ${limit}`);
      t.equal(await burst(limiter, charge, 3), 0, 'and none after that');
    }
  });

  t.test('one request after the other: what was used before is told exactly', async (t) => {
    await windowWithRoom(60_000, 3000);
    const limiter = await limiterOf(t);
    const charge = new Charge([bucket(policy('p', 3, 60), someone())], null);
    for (const [admitted, used] of [
      [true, 0],
      [true, 1],
      [true, 2],
      [false, 3],
      [false, 3],
    ] as const) {
      const answer = await spend(limiter, charge);
      if (answer.kind !== 'spent') return t.fail('the store is there');
      t.equal(answer.admitted, admitted);
      t.equal((answer.spent.used[0] ?? 0) + answer.position, used);
    }
  });

  t.test('all or nothing: a request denied by one policy is charged to none', async (t) => {
    await windowWithRoom(60_000, 3000);
    const limiter = await limiterOf(t);
    const who = someone();
    const wide = bucket(policy('wide', 100, 60), who);
    const narrow = bucket(policy('narrow', 5, 60), who);
    t.equal(await burst(limiter, new Charge([wide, narrow], null), 50), 5);
    t.equal(await burst(limiter, new Charge([wide], null), 200), 95, 'the 45 denied ones left no trace');
  });

  t.test('two charges of the same turn that share a bucket do not overspend it', async (t) => {
    await windowWithRoom(60_000, 3000);
    const limiter = await limiterOf(t);
    const shared = bucket(policy('shared', 10, 60), someone());
    const one = new Charge([shared, bucket(policy('a', 100, 60), someone())], null);
    const two = new Charge([shared, bucket(policy('b', 100, 60), someone())], null);
    const [a, b] = await Promise.all([burst(limiter, one, 8), burst(limiter, two, 8)]);
    t.equal(a + b, 10);
  });

  t.test('identities do not touch each other', async (t) => {
    await windowWithRoom(60_000, 3000);
    const limiter = await limiterOf(t);
    const p = policy('p', 2, 60);
    t.equal(await burst(limiter, new Charge([bucket(p, someone())], null), 5), 2);
    t.equal(await burst(limiter, new Charge([bucket(p, someone())], null), 5), 2);
  });

  t.test('a window ends on the clock, and the next one has the whole limit', async (t) => {
    const limiter = await limiterOf(t);
    const charge = new Charge([bucket(policy('second', 4, 1), someone())], null);
    await windowWithRoom(1000, 300);
    t.equal(await burst(limiter, charge, 9), 4);
    const answer = await spend(limiter, charge);
    if (answer.kind !== 'spent') return t.fail('the store is there');
    const resetMs = answer.spent.resetMs[0] ?? 0;
    t.ok(resetMs > 0 && resetMs <= 1000, `${resetMs} ms are within the window`);
    await new Promise((resolve) => setTimeout(resolve, resetMs + 2));
    t.equal(await burst(limiter, charge, 9), 4, 'a fresh window');
  });

  t.test('a limit lowered below what was used denies; raised, it helps at once', async (t) => {
    await windowWithRoom(60_000, 3000);
    const limiter = await limiterOf(t);
    const who = someone();
    const at = (limit: number): Charge => new Charge([bucket(policy('p', limit, 60), who)], null);
    t.equal(await burst(limiter, at(10), 8), 8);
    t.equal(await burst(limiter, at(5), 3), 0);
    t.equal(await burst(limiter, at(12), 9), 4, 'the lowered limit did not change the count');
  });

  t.test('shadow policies count up to their limit and never deny', async (t) => {
    await windowWithRoom(60_000, 3000);
    const limiter = await limiterOf(t);
    const who = someone();
    const shadow = bucket(policy('shadow', 3, 60, { mode: 'shadow' }), who);
    const real = bucket(policy('real', 8, 60), who);
    t.equal(await burst(limiter, new Charge([shadow, real], null), 12), 8);
    const answer = await spend(limiter, new Charge([shadow], null));
    if (answer.kind !== 'spent') return t.fail('the store is there');
    t.equal(answer.admitted, true);
    t.strictSame(answer.spent.used, [3]);
  });

  t.test('an unproven credential burdens its address; a proven one does not', async (t) => {
    await windowWithRoom(60_000, 3000);
    const limiter = await limiterOf(t);
    const p = policy('keys', 5, 60);
    const address = someone();
    const withKey = (key: string): Charge =>
      new Charge([bucket(p, key), bucket(p, address, true)], proof(key));
    let admitted = 0;
    for (let i = 0; i < 12; i++) admitted += await burst(limiter, withKey(someone()), 1);
    t.equal(admitted, 5, 'twelve fresh keys from one address get one limit');

    const good = someone();
    const elsewhere = proof(good);
    limiter.prove(elsewhere);
    t.ok(elsewhere.provenUntil > clock(), 'known here at once');
    const charge = withKey(good);
    t.equal(
      await burst(limiter, charge, 9),
      5,
      'proven, it has its own limit although the address is exhausted',
    );
    t.ok((charge.proof?.provenUntil ?? 0) > clock(), 'and the store told so');
  });

  t.test('an exhausted bucket is remembered until its window ends, not longer', async (t) => {
    const limiter = await limiterOf(t);
    const b = bucket(policy('p', 2, 1), someone());
    await windowWithRoom(1000, 300);
    const windowEnd = Math.ceil(clock() / 1000) * 1000;
    t.equal(await burst(limiter, new Charge([b], null), 2), 2);
    t.ok(b.exhaustedUntil > clock(), 'exhausted');
    t.ok(b.exhaustedUntil <= windowEnd, 'the memory ends before the window does');
    t.ok(b.resetsAt >= windowEnd - 1, 'and who waits for the reset waits long enough');
  });
}

t.test('memory', async (t) => {
  conformance(t, async (t) => {
    const limiter = new MemoryLimiter({ clock });
    t.teardown(() => limiter.close());
    return limiter;
  });
});

t.test('Redis', async (t) => {
  const redis = await startRedis();
  t.teardown(() => redis.close());
  conformance(t, async (t) => {
    const limiter = new GuardedLimiter({
      url: redis.url,
      clock,
      log: { warn: () => {}, info: () => {} },
      budgetMs: 2000,
      replica: 'conformance',
      salt: 'salt',
      onSalt: () => {},
    });
    await limiter.connect();
    t.teardown(() => limiter.close());
    return limiter;
  });
});

t.test('arithmetic that all stores share', async (t) => {
  t.equal(untilWindowEnd(60_000, 60_000), 60_000, 'a window begins with its whole length');
  t.equal(untilWindowEnd(119_999, 60_000), 1);
  t.equal(effectiveLimit(policy('p', 100, 60), 1), 100);
  t.equal(effectiveLimit(policy('p', 100, 60), 3), 33);
  t.equal(effectiveLimit(policy('p', 5, 60), 8), 1, 'a share is never nothing');
  const shadow = bucket(policy('p', 1, 60, { mode: 'shadow' }));
  const spent: Spent = {
    buckets: [shadow],
    admitted: 1,
    used: [0],
    resetMs: [10],
    divisor: 1,
    degraded: false,
  };
  rememberExhausted(spent, 0, () => 0);
  t.equal(shadow.exhaustedUntil, 0, 'a shadow policy never denies from memory');
});
