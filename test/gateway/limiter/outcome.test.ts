/**
 * Tests `count: failure`, `count: success` and costs that replies report: the script, the memory store and a model agree
 * request by request, with replies in any order.
 */
import { deepEqual, equal, ok } from 'node:assert/strict';
import t from 'tap';
import { Bucket } from '#gateway/limiter/charge.ts';
import type { Adjustment } from '#gateway/limiter/check.ts';
import { KnownCounters } from '#gateway/limiter/known-counters.ts';
import type { Outcome, Spent } from '#gateway/limiter/limiter.ts';
import { LocalDecisions } from '#gateway/limiter/local-decisions.ts';
import type { GuardedLimiter } from '#gateway/limiter/outage.ts';
import { type Ending, type Moment, outcomesOf, settlement } from '#gateway/limiter/outcome.ts';
import { Replicas } from '#gateway/limiter/replicas.ts';
import { StoreClock } from '#gateway/limiter/store-clock.ts';
import { Counter } from '#gateway/policy/counter.ts';
import type { Algorithm, Cost, Count, Policy } from '#gateway/policy/policy.ts';
import { testClock } from '#test/support/clock.ts';
import { fc } from '#test/support/fast-check.ts';
import { startLimiter, untilAway } from '#test/support/guarded-limiter.ts';
import { startRedis } from '#test/support/redis.ts';
import { startScript } from '#test/support/script.ts';
import { rounds } from '#test/support/seed.ts';
import { burst, chargeOf, memoryLimiter, part, policy, spend } from '#test/support/spend.ts';
import { until } from '#test/support/until.ts';
import { insideLongWindow, LONG_WINDOW_SECONDS } from '#test/support/window.ts';

const ALGORITHMS: readonly Algorithm[] = [
  'fixed-window',
  'sliding-window',
  'token-bucket',
  'calendar-window',
];
const REPORTED: Cost = { kind: 'reply-header', header: 'x-units', reserve: 1 };
const begun = (headers: readonly string[] | null): Moment => ({ at: 'begin', headers, isWhole: true });

type Event =
  | { readonly kind: 'ask'; readonly policies: readonly number[]; readonly cost: number }
  /** The application replies to one of the requests in flight. */
  | {
      readonly kind: 'reply';
      readonly which: number;
      readonly status: Ending;
      readonly reported: string | null;
    }
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
    status: fc.constantFrom<Ending[]>(200, 302, 101, 401, 503, 'unknown', null),
    reported: fc.constantFrom('0', '1', '2', '4', '9', '100', '999999999999999', '-1', null),
  }),
  fc.record({ kind: fc.constant('wait' as const), ms: fc.constantFrom(0, 1, 200, 999, 1000, 2500) }),
);
const row = fc.record({
  algorithm: fc.constantFrom(...ALGORITHMS),
  count: fc.constantFrom<Count>('request', 'failure', 'success'),
  limit: fc.integer({ min: 1, max: 5 }),
  windowSeconds: fc.constantFrom(1, 3),
  shadow: fc.boolean(),
  isReported: fc.boolean(),
});

t.test('admits at most the limit of requests that count, and gives the others back', async (t) => {
  const { ask, askOne } = await startScript(t);
  let run = 0;
  let given = 0;
  let beyond = 0;
  await fc.assert(
    fc.asyncProperty(
      fc.array(row, { minLength: 3, maxLength: 3 }),
      fc.array(event, { minLength: 5, maxLength: 40 }),
      async (rows, events) => {
        run++;
        const clock = testClock(Date.UTC(2026, 0, 1) + 500);
        const memory = memoryLimiter({ clock: clock.now });
        const policies = rows.map(({ algorithm, count, limit, windowSeconds, shadow, isReported }, index) =>
          policy(`p${index}`, limit, windowSeconds, {
            index,
            algorithm,
            count,
            cost: isReported ? REPORTED : { kind: 'units', units: 1 },
            mode: shadow ? 'shadow' : 'enforce',
          }),
        );
        const open: { readonly spent: Spent; readonly alone: Spent }[] = [];
        /** Admitted usage that counts, or may still count, by policy and window. */
        const counted = new Map<string, number>();
        const note = ({ policy, cost }: Bucket, chargedAt: number, sign: number): void => {
          const key = `${policy.name} ${Math.floor(chargedAt / policy.windowMs)}`;
          const sum = (counted.get(key) ?? 0) + sign * cost;
          counted.set(key, sum);
          // A reply may report more than there is room for.
          if (policy.algorithm !== 'token-bucket' && policy.cost.kind === 'units')
            ok(sum <= policy.limit, `${key}: ${sum}`);
        };
        for (const event of events) {
          const now = clock.now();
          if (event.kind === 'wait') clock.advance(event.ms);
          else if (event.kind === 'ask') {
            const parts = event.policies.map((number) =>
              part(policies[number] as Policy, `${run}`, event.cost),
            );
            const spent = await askOne(now, parts);
            const alone = await spend(memory, chargeOf(...parts));
            if (alone.kind !== 'spent') throw new Error('both answer');
            equal(spent.admitted, alone.spent.admitted);
            deepEqual(spent.states, alone.spent.states);
            if (spent.admitted === 0) continue;
            open.push({ spent, alone: alone.spent });
            for (const [i, part] of parts.entries())
              if (spent.states[i]?.roomFor(part.cost) !== 0) note(part, now, 1);
          } else {
            const [one] = open.splice(event.which % Math.max(1, open.length), 1);
            if (one === undefined) continue;
            const { status } = event;
            const headers = event.reported === null ? [] : ['X-Units', event.reported];
            const fields = typeof status === 'number' || status === 'unknown' ? headers : null;
            const outcomes = outcomesOf(one.spent, 0, status, begun(fields));
            memory.conclude(outcomesOf(one.alone, 0, status, begun(fields)));
            for (const { bucket, chargedAt, units } of outcomes) {
              if (units === 0) note(bucket, chargedAt, -1);
              if (units < bucket.cost) given++;
              if (units > bucket.cost) beyond++;
            }
            const changes = outcomes
              .map((outcome) => settlement(outcome, now))
              .filter(({ amount }) => amount !== 0);
            if (changes.length === 0) continue;
            await ask(now, [], changes);
          }
        }
      },
    ),
    { numRuns: rounds(1000) },
  );
  t.ok(given > rounds(200), `${given} given back`);
  t.ok(beyond > rounds(200), `${beyond} charged beyond the reserve`);
});

/** Makes a request. If it is admitted, the application answers a little later. @returns whether it was admitted */
async function request(
  limiter: GuardedLimiter,
  parts: readonly Bucket[],
  status: number | null,
  headers: readonly string[] | null = null,
): Promise<boolean> {
  const answer = await spend(limiter, chargeOf(...parts));
  if (answer.kind !== 'spent' || !answer.admitted) return false;
  await new Promise((resolve) => setImmediate(resolve));
  const outcomes: Outcome[] = outcomesOf(answer.spent, answer.position, status, begun(headers));
  limiter.conclude(outcomes, answer.spent.isLocal);
  return true;
}

const reported = (limit: number, algorithm: Algorithm, windowSeconds = LONG_WINDOW_SECONDS): Bucket =>
  part(policy(`reported-${algorithm}`, limit, windowSeconds, { algorithm, cost: REPORTED }));

t.test('the store is down when replies begin: it is charged and given back later', async (t) => {
  const redis = await startRedis(t);
  const limiter = await startLimiter(t, redis.url, { budgetMs: 100 });
  await insideLongWindow();
  const buckets = ALGORITHMS.map((algorithm) => part(reported(100, algorithm).policy, 'somebody', 10));
  const inFlight = await Promise.all(
    buckets.flatMap((bucket) => Array.from({ length: 3 }, () => spend(limiter, chargeOf(bucket)))),
  );
  redis.freeze();
  await untilAway(limiter);
  const units = ['1', '15', '30'];
  for (const [i, answer] of inFlight.entries()) {
    if (answer.kind !== 'spent') throw new Error('the store was there');
    const outcomes = outcomesOf(answer.spent, answer.position, 200, begun(['x-units', units[i % 3] ?? '']));
    limiter.conclude(outcomes, answer.spent.isLocal);
  }
  for (const bucket of buckets)
    t.ok(await request(limiter, [bucket], 200, ['x-units', '4']), 'the request is decided without the store');
  redis.thaw();
  await until(() => limiter.stats().available);
  for (const { policy, identity } of buckets) {
    const one = new Bucket(new Counter(policy, false), identity);
    t.equal(await burst(limiter, chargeOf(one), 100), 50, `${policy.name}: 100 less 46 and 4`);
  }
});

t.test('what the store may not have heard: charges stay owed, and nothing is given back twice', async (t) => {
  const { now: clock } = testClock(1_000_000_000);
  const storeClock = new StoreClock(clock);
  const known = new KnownCounters({ countersMax: 8 });
  let isLost = true;
  const sent: number[] = [];
  const commit = (some: readonly Adjustment[]) => {
    sent.push(...some.map(({ amount }) => amount));
    return [{ some, made: isLost ? Promise.reject(new Error('the connection broke')) : Promise.resolve() }];
  };
  const local = new LocalDecisions({
    ...{ clock, storeClock, known, commit },
    replicas: new Replicas(clock, 'one'),
  });
  const owe = (name: string, amount: number): void =>
    local.owe({ bucket: part(policy(name, 10, 60)), amount, chargedAt: clock() });
  owe('charged', 3);
  owe('given-back', -2);
  await t.rejects(local.commit(), { message: 'the connection broke' });
  t.notOk(local.isSettled);
  isLost = false;
  await local.commit();
  t.strictSame(sent, [3, -2, 3]);
  t.ok(local.isSettled);
});

t.test('how much one reply can charge: ten limits, or ten bursts if those are more', async (t) => {
  for (const [limit, burst, most] of [
    [1000, 10, 10_000],
    [10, 1000, 10_000],
  ] as const) {
    const row = { algorithm: 'token-bucket', burst, capacity: burst, cost: REPORTED } as const;
    const memory = memoryLimiter({ clock: () => 1_000_000_000 });
    const answer = await spend(memory, chargeOf(part(policy('p', limit, 60, row))));
    if (answer.kind !== 'spent') throw new Error('memory answers');
    const [outcome] = outcomesOf(answer.spent, 0, 200, begun(['x-units', '999999']));
    t.equal(outcome?.units, most, `limit ${limit}, burst ${burst}`);
  }
});
