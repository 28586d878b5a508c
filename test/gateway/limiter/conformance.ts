/** The conformance suite of stores: memory, one Redis, sentinels and a Cluster. */
import type { Test } from 'tap';
import type { Bucket } from '#gateway/limiter/charge.ts';
import type { Limiter } from '#gateway/limiter/limiter.ts';
import type { Algorithm, Policy } from '#gateway/policy/policy.ts';
import { startLimiter } from '#test/support/guarded-limiter.ts';
import {
  burst,
  chargeOf,
  identity,
  part,
  partWithLimit,
  policy,
  spend,
  unproven,
  VALUES,
  withValue,
} from '#test/support/spend.ts';
import { inOneWindow, insideLongWindow, LONG_WINDOW_SECONDS, nextWindow } from '#test/support/window.ts';

export function conformance(
  t: Test,
  limiterOf: (t: Test) => Promise<Limiter>,
  algorithm: Algorithm = 'fixed-window',
): void {
  const of = (name: string, limit: number, more: Partial<Policy> = {}): Policy =>
    policy(name, limit, LONG_WINDOW_SECONDS, { algorithm, ...more });
  let people = 0;
  /** Names an identity that no test of another algorithm has proven in the same store. */
  const someone = (): string => `${algorithm.slice(0, 7)}-${++people}`;

  t.test('admits exactly the limit of concurrent requests', async (t) => {
    await insideLongWindow();
    const limiter = await limiterOf(t);
    for (const limit of [1, 5, 100]) {
      const charge = chargeOf(part(of(`p${limit}`, limit), someone()));
      t.equal(await burst(limiter, charge, limit * 3), limit, `${limit * 3} asked for ${limit}`);
      t.equal(await burst(limiter, charge, 3), 0, 'further requests are denied');
    }
  });

  t.test('all or nothing: a request denied by one policy is charged to none', async (t) => {
    await insideLongWindow();
    const limiter = await limiterOf(t);
    const who = someone();
    const wide = part(of('wide', 100), who);
    const narrow = part(of('narrow', 5), who);
    t.equal(await burst(limiter, chargeOf(wide, narrow), 50), 5);
    t.equal(await burst(limiter, chargeOf(wide), 200), 95, 'the 45 denied requests were not charged');
  });

  t.test('two charges of the same tick that share a bucket do not exceed it', async (t) => {
    await insideLongWindow();
    const limiter = await limiterOf(t);
    const who = someone();
    const shared = () => part(of('shared', 10), who);
    const one = chargeOf(shared(), part(of('a', 100), someone()));
    const two = chargeOf(shared(), part(of('b', 100), someone()));
    const [a, b] = await Promise.all([burst(limiter, one, 8), burst(limiter, two, 8)]);
    t.equal(a + b, 10);
  });

  if (algorithm === 'fixed-window')
    t.test('a window ends by the clock, and the next one has the whole limit', async (t) => {
      const limiter = await limiterOf(t);
      const charge = chargeOf(part(policy('second', 4, 1), someone()));
      for (const which of ['a window', 'the next one']) {
        await nextWindow(1000);
        const { admitted, answer } = await inOneWindow(1000, async () => ({
          admitted: await burst(limiter, charge, 9),
          answer: await spend(limiter, charge),
        }));
        t.equal(admitted, 4, which);
        if (answer.kind !== 'spent') return t.fail('the store does not answer');
        const resetMs = answer.spent.states[0]?.resetMs(0) ?? 0;
        t.ok(resetMs > 0 && resetMs <= 1000, `${resetMs} ms are within the window`);
      }
    });

  t.test('an override is another limit on the same counter, also for concurrent requests', async (t) => {
    await insideLongWindow();
    const limiter = await limiterOf(t);
    const p = of('p', 10);
    const who = someone();
    const usual = chargeOf(part(p, who));
    const raised = chargeOf(partWithLimit(p, 25, who));
    const lowered = chargeOf(partWithLimit(p, 4, who));
    t.equal(await burst(limiter, lowered, 6), 4);
    t.equal(await burst(limiter, usual, 9), 6);
    t.equal(await burst(limiter, lowered, 2), 0);
    const together = await Promise.all([burst(limiter, usual, 5), burst(limiter, raised, 20)]);
    t.strictSame(together, [0, 15]);
    const answer = await spend(limiter, raised);
    if (answer.kind !== 'spent') return t.fail('the store does not answer');
    t.equal(answer.admitted, false);
    t.equal((answer.spent.states[0]?.used ?? 0) + answer.position, 25);
  });

  for (const mode of ['shadow', 'mark'] as const)
    t.test(`${mode}: policies count up to their limit and never deny`, async (t) => {
      await insideLongWindow();
      const limiter = await limiterOf(t);
      const who = someone();
      const tried = part(of(mode, 3, { mode }), who);
      const real = part(of('real', 8), who);
      t.equal(await burst(limiter, chargeOf(tried, real), 12), 8);
      const answer = await spend(limiter, chargeOf(tried));
      if (answer.kind !== 'spent') return t.fail('the store does not answer');
      t.equal(answer.admitted, true);
      t.equal(answer.spent.states[0]?.used, 3);
    });

  t.test(
    'different values: as many as the limit, each again and again, charged with the others or not',
    async (t) => {
      await insideLongWindow();
      const limiter = await limiterOf(t);
      const who = someone();
      const values = part(policy('values', 4, LONG_WINDOW_SECONDS, VALUES), who);
      const ask = async (value: string, times: number, ...others: readonly Bucket[]): Promise<number> =>
        burst(limiter, chargeOf(withValue(values, value), ...others), times);
      const together = ['a', 'b', 'c', 'a'].map((value) => ask(value, 3));
      t.strictSame(await Promise.all(together), [3, 3, 3, 3], 'at once');
      const other = part(of('other', 5), someone());
      t.equal(await ask('a', 9, other), 5);
      t.equal(await ask('d', 2, other), 0, 'denied by the other policy');
      t.strictSame([await ask('e', 2), await ask('d', 2), await ask('b', 2)], [2, 0, 2], 'd took nothing');
      const [key, address] = [someone(), someone()];
      const ofKey = unproven(policy('keys', 2, LONG_WINDOW_SECONDS, VALUES), key, address);
      const asKey = (value: string): Promise<number> =>
        burst(limiter, chargeOf(...ofKey.map((bucket) => withValue(bucket, value))), 1);
      t.strictSame([await asKey('a'), await asKey('b'), await asKey('c'), await asKey('a')], [1, 1, 0, 1]);
    },
  );

  t.test('unproven credentials share one limit of their address', async (t) => {
    await insideLongWindow();
    const limiter = await limiterOf(t);
    const p = of('keys', 10);
    const address = someone();
    const withKey = (key: string) => chargeOf(...unproven(p, key, address));

    const early = someone();
    t.equal(await burst(limiter, withKey(early), 1), 1);
    let admitted = 0;
    for (let i = 0; i < 25; i++) admitted += await burst(limiter, withKey(someone()), 1);
    t.equal(admitted, 9, 'new credentials get the rest of the limit');
    t.equal(await burst(limiter, withKey(early), 5), 0, 'a credential that was used before gets none');

    const good = someone();
    limiter.prove(identity(good));
    t.ok(limiter.isProven(identity(good)), 'this process knows the proof at once');
    t.equal(
      await burst(limiter, withKey(good), 15),
      10,
      'a proven credential has its own limit, although the address is exhausted',
    );
    limiter.withdraw(identity(good));
    t.notOk(limiter.isProven(identity(good)));
    const refused = someone();
    limiter.prove(identity(refused));
    limiter.withdraw(identity(refused));
    t.equal(await burst(limiter, withKey(refused), 5), 0, 'after a 401 it is unproven');
  });
}

export function forEachAlgorithm(t: Test, limiterOf: (t: Test) => Promise<Limiter>): void {
  for (const algorithm of ['fixed-window', 'sliding-window', 'token-bucket', 'concurrency'] as const)
    t.test(algorithm, async (t) => conformance(t, limiterOf, algorithm));
}

export const storeAt =
  (url: string) =>
  (t: Test): Promise<Limiter> =>
    startLimiter(t, url);
