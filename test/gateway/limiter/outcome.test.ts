/**
 * Tests `count: failure` and `count: success`: the script, the memory store and a model agree request by request, with
 * replies in any order.
 */
import { deepEqual, equal, ok } from 'node:assert/strict';
import fc from 'fast-check';
import t from 'tap';
import type { Bucket } from '#gateway/limiter/charge.ts';
import { readReply, refund, scriptCall } from '#gateway/limiter/check.ts';
import type { LimitListener, Outcome, Spent } from '#gateway/limiter/limiter.ts';
import type { GuardedLimiter } from '#gateway/limiter/outage.ts';
import { outcomesOf } from '#gateway/limiter/outcome.ts';
import { SPEND } from '#gateway/limiter/script.ts';
import type { Algorithm, Count, Policy } from '#gateway/policy/policy.ts';
import { testClock } from '#test/support/clock.ts';
import { startLimiter } from '#test/support/guarded-limiter.ts';
import { startRedis } from '#test/support/redis.ts';
import { startCluster } from '#test/support/redis-cluster.ts';
import { burst, chargeOf, memoryLimiter, part, policy, spend } from '#test/support/spend.ts';
import { until } from '#test/support/until.ts';
import { insideLongWindow, LONG_WINDOW_SECONDS } from '#test/support/window.ts';

const ALGORITHMS: readonly Algorithm[] = [
  'fixed-window',
  'sliding-window',
  'token-bucket',
  'calendar-window',
];
const nobody: LimitListener = { onSpent() {}, onStoreUnavailable() {} };

type Event =
  | { readonly kind: 'ask'; readonly policies: readonly number[]; readonly cost: number }
  /** The application answers one of the requests in flight. */
  | { readonly kind: 'reply'; readonly which: number; readonly status: number | null }
  | { readonly kind: 'wait'; readonly ms: number };

const event: fc.Arbitrary<Event> = fc.oneof(
  fc.record({
    kind: fc.constant('ask' as const),
    policies: fc.uniqueArray(fc.nat(2), { minLength: 1 }),
    cost: fc.constantFrom(1, 1, 2),
  }),
  fc.record({
    kind: fc.constant('reply' as const),
    which: fc.nat(10),
    status: fc.constantFrom(200, 302, 101, 401, 503, null),
  }),
  fc.record({ kind: fc.constant('wait' as const), ms: fc.constantFrom(0, 1, 200, 999, 1000, 2500) }),
);
const row = fc.record({
  algorithm: fc.constantFrom(...ALGORITHMS),
  count: fc.constantFrom<Count>('request', 'failure', 'success'),
  limit: fc.integer({ min: 1, max: 5 }),
  windowSeconds: fc.constantFrom(1, 3),
  shadow: fc.boolean(),
});

t.test('never more than the limit of those that count, and what does not is given back', async (t) => {
  const redis = await startRedis();
  t.teardown(() => redis.close());
  const at = (lua: string): string => lua.replace("call('TIME')", '{ ARGV[2], ARGV[3] }');
  const time = (now: number): string[] => [String(Math.floor(now / 1000)), String((now % 1000) * 1000)];
  let run = 0;
  let given = 0;
  await fc.assert(
    fc.asyncProperty(
      fc.array(row, { minLength: 3, maxLength: 3 }),
      fc.array(event, { minLength: 5, maxLength: 40 }),
      async (rows, events) => {
        run++;
        const clock = testClock(Date.UTC(2026, 0, 1) + 500);
        const memory = memoryLimiter({ clock: clock.now });
        const policies = rows.map(({ algorithm, count, limit, windowSeconds, shadow }, index) =>
          policy(`p${index}`, limit, windowSeconds, {
            index,
            algorithm,
            count,
            mode: shadow ? 'shadow' : 'enforce',
          }),
        );
        const open: { readonly spent: Spent; readonly alone: Spent }[] = [];
        /** Usage that was admitted and counts, or may still count, by policy and window. */
        const counted = new Map<string, number>();
        const note = ({ policy, cost }: Bucket, chargedAt: number, sign: number): void => {
          const key = `${policy.name} ${Math.floor(chargedAt / policy.windowMs)}`;
          const sum = (counted.get(key) ?? 0) + sign * cost;
          counted.set(key, sum);
          if (policy.algorithm !== 'token-bucket') ok(sum <= policy.limit, `${key}: ${sum}`);
        };
        for (const event of events) {
          const now = clock.now();
          if (event.kind === 'wait') clock.advance(event.ms);
          else if (event.kind === 'ask') {
            const parts = event.policies.map((number) =>
              part(policies[number] as Policy, `${run}`, event.cost),
            );
            const charge = chargeOf(...parts);
            const asked = [{ charge, listeners: [nobody], leases: null }];
            const { keys, args } = scriptCall(now, asked);
            const reply = await redis.client.eval(at(SPEND.lua), keys.length, ...keys, ...args, ...time(now));
            const spent = readReply(reply, asked)[0]?.spent;
            const alone = await spend(memory, charge);
            if (spent === undefined || alone.kind !== 'spent') throw new Error('both answer');
            equal(spent.admitted, alone.spent.admitted);
            deepEqual(spent.states, alone.spent.states);
            if (spent.admitted === 0) continue;
            open.push({ spent, alone: alone.spent });
            for (const [i, part] of parts.entries())
              if (spent.states[i]?.roomFor(part.cost) !== 0) note(part, now, 1);
          } else {
            const [one] = open.splice(event.which % Math.max(1, open.length), 1);
            if (one === undefined) continue;
            const outcomes = outcomesOf(one.spent, 0, event.status);
            memory.conclude(outcomesOf(one.alone, 0, event.status));
            const back = outcomes.filter(({ counts }) => !counts);
            if (back.length === 0) continue;
            given += back.length;
            for (const { bucket, chargedAt } of back) note(bucket, chargedAt, -1);
            const { keys, args } = scriptCall(
              now,
              [],
              back.map(({ bucket, chargedAt }) => refund(bucket, bucket.cost, chargedAt)),
            );
            await redis.client.eval(at(SPEND.lua), keys.length, ...keys, ...args, ...time(now));
          }
        }
      },
    ),
    { numRuns: 300 },
  );
  t.ok(given > 200, `${given} given back`);
});

const failures = (limit: number, algorithm: Algorithm = 'fixed-window'): Policy =>
  policy(`failures-${algorithm}`, limit, LONG_WINDOW_SECONDS, { count: 'failure', algorithm });

/** Makes a request. If it is admitted, the application answers a little later. @returns whether it was admitted */
async function request(
  limiter: GuardedLimiter,
  parts: readonly Bucket[],
  status: number | null,
): Promise<boolean> {
  const answer = await spend(limiter, chargeOf(...parts));
  if (answer.kind !== 'spent' || !answer.admitted) return false;
  await new Promise((resolve) => setImmediate(resolve));
  const outcomes: Outcome[] = outcomesOf(answer.spent, answer.position, status);
  limiter.conclude(outcomes, answer.spent.isLocal);
  return true;
}

for (const [name, start] of [
  ['Redis', startRedis],
  ['Cluster, each part on a node of its own', null],
] as const) {
  t.test(`several processes at once: ${name}`, async (t) => {
    const server = start === null ? await startCluster(t) : await start();
    if (start !== null) t.teardown(() => (server as { close(): unknown }).close());
    const limiters = await Promise.all([1, 2].map(() => startLimiter(t, server.url)));
    await insideLongWindow();
    for (const algorithm of ALGORITHMS) {
      const parts = [
        part(failures(7, algorithm), 'one'),
        part(policy('wide', 100_000, LONG_WINDOW_SECONDS), 'two'),
      ];
      let failed = 0;
      let passed = 0;
      await Promise.all(
        limiters.flatMap((limiter) =>
          Array.from({ length: 8 }, async (_, i) => {
            for (let n = 0; n < 15; n++) {
              const fails = (n + i) % 3 === 0;
              const admitted = await request(limiter, parts, fails ? 401 : 200);
              if (admitted) fails ? failed++ : passed++;
            }
          }),
        ),
      );
      t.ok(failed <= 7, `${algorithm}: ${failed} failures`);
      t.ok(passed > 0, `${passed} passed`);
      const [limiter] = limiters;
      if (limiter === undefined) throw new Error('there are two');
      // Usage that is given back takes a moment to arrive.
      let left = 0;
      await until(async () => {
        if (await request(limiter, parts, 500)) left++;
        return failed + left >= 7;
      });
      t.equal(await burst(limiter, chargeOf(...parts), 5), 0, 'exactly seven');
    }
  });
}

t.test('an outage: what counted is owed, what did not is not', async (t) => {
  const redis = await startRedis();
  t.teardown(() => redis.close());
  const limiter = await startLimiter(t, redis.url, { budgetMs: 100 });
  await insideLongWindow();
  const all = ALGORITHMS.map((algorithm) => [part(failures(10, algorithm), 'one')]);
  for (const parts of all)
    for (const status of [200, 500, 200, 401, 200]) t.ok(await request(limiter, parts, status));
  redis.freeze();
  await until(async () => {
    await spend(limiter, chargeOf(part(policy('probe', 1e6, LONG_WINDOW_SECONDS))));
    return !limiter.stats().available;
  });
  for (const parts of all) {
    for (let i = 0; i < 20; i++)
      t.ok(await request(limiter, parts, 204), 'successes do not count here either');
    for (let i = 0; i < 3; i++) t.ok(await request(limiter, parts, 404));
  }
  redis.thaw();
  await until(() => limiter.stats().available);
  for (const parts of all) t.equal(await burst(limiter, chargeOf(...parts), 10), 5, 'ten less two and three');
});
