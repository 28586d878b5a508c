import t from 'tap';
import { BucketState } from '#gateway/limiter/bucket-state.ts';
import { type Decision, decide } from '#gateway/limiter/decision.ts';
import { retryAfterSeconds, type Spent, type Verdict } from '#gateway/limiter/limiter.ts';
import type { Policy } from '#gateway/policy/policy.ts';
import { part, policy } from '#test/support/spend.ts';

/** One bucket of a charge: its policy, the usage before it (-1 if not charged), and its end. */
interface Told {
  readonly of: Policy;
  readonly used: number;
  readonly resetMs: number;
}

const told = (of: Policy, used: number, resetMs: number): Told => ({ of, used, resetMs });

function spent(admitted: number, charge: readonly Told[], shares: readonly number[] = []): Spent {
  return {
    buckets: charge.map(({ of }) => part(of)),
    admitted,
    states: charge.map(({ of, used, resetMs }, i) => {
      const share = shares[i] ?? of.limit;
      const state = { at: 1000 * of.windowMs - resetMs, a: used, b: 0 };
      return used < 0 ? null : new BucketState(of, state, share, share);
    }),
    leases: null,
    isLocal: shares.length > 0,
  };
}

/** Formats a decision: `allow` or `deny`, then `name:remaining` in order. */
function text(decision: Decision): string {
  const verdicts = decision.kind === 'allow' ? decision.verdicts : decision.violated;
  return [decision.kind, ...verdicts.map((verdict) => `${verdict.policy.name}:${verdict.remaining}`)].join(
    ' ',
  );
}

const five = policy('five', 5, 60, { index: 0 });
const hundred = policy('hundred', 100, 60, { index: 1 });
const hourly = policy('hourly', 5, 3600, { index: 2 });
const shadow = policy('shadow', 5, 60, { index: 3, mode: 'shadow' });
const mark = policy('mark', 5, 60, { index: 4, mode: 'mark' });

t.test('admits the first ones of a batch, each with its own remaining count', async (t) => {
  const three = spent(3, [told(five, 2, 1000)]);
  t.equal(text(decide(three, 0)), 'allow five:2');
  t.equal(text(decide(three, 1)), 'allow five:1');
  t.equal(text(decide(three, 2)), 'allow five:0');
  t.equal(text(decide(three, 3)), 'deny five:0');
  t.equal(text(decide(three, 99)), 'deny five:0');
  t.equal(text(decide(spent(0, [told(five, 5, 1000)]), 0)), 'deny five:0');
});

t.test('a denial names only exhausted policies, the one that resets last first', async (t) => {
  t.equal(text(decide(spent(0, [told(five, 5, 1000), told(hundred, 7, 1000)]), 0)), 'deny five:0');
  t.equal(text(decide(spent(0, [told(five, 4, 1000), told(hundred, 100, 1000)]), 0)), 'deny hundred:0');
  t.equal(
    text(decide(spent(0, [told(five, 5, 1000), told(hourly, 5, 9000), told(hundred, 0, 1000)]), 0)),
    'deny hourly:0 five:0',
  );
  t.equal(
    text(decide(spent(2, [told(five, 3, 1000), told(hundred, 0, 1000)]), 2)),
    'deny five:0',
    'the requests before it used up the limit',
  );
});

t.test('the tightest policy comes first: least left, then latest reset, then file order', async (t) => {
  t.equal(text(decide(spent(1, [told(hundred, 10, 9), told(five, 0, 9)]), 0)), 'allow five:4 hundred:89');
  t.equal(text(decide(spent(1, [told(five, 1, 1000), told(hourly, 1, 2000)]), 0)), 'allow hourly:3 five:3');
  t.equal(text(decide(spent(1, [told(hourly, 1, 1000), told(five, 1, 1000)]), 0)), 'allow five:3 hourly:3');
  t.strictSame(decide(spent(1, [told(five, 1, 1234)]), 0), {
    kind: 'allow',
    verdicts: [{ policy: five, capacity: five.limit, limit: five.limit, remaining: 3, resetMs: 1234 }],
    shadowDenials: [],
    marks: [],
  });
});

for (const [of, found] of [
  [shadow, 'shadowDenials'],
  [mark, 'marks'],
] as const)
  t.test(
    `${of.name}: such policies never deny and no client hears of them, only who is over them`,
    async (t) => {
      const within = decide(spent(1, [told(of, 4, 1000), told(five, 0, 1000)]), 0);
      t.match(within, {
        kind: 'allow',
        verdicts: [{ policy: five }],
        shadowDenials: [],
        marks: { length: 0 },
      });
      const beyond = decide(spent(1, [told(of, 5, 1000), told(five, 0, 1000)]), 0);
      t.match(beyond, { kind: 'allow', verdicts: { length: 1 }, [found]: [of] });
      const batch = spent(2, [told(of, 4, 1000)]);
      t.match(decide(batch, 0), { kind: 'allow', verdicts: [], [found]: { length: 0 } });
      t.match(decide(batch, 1), { kind: 'allow', [found]: [of] }, 'the second of two is over it');
      t.equal(text(decide(spent(0, [told(of, 5, 1000), told(five, 5, 1000)]), 0)), 'deny five:0');
    },
  );

t.test('a credential and its unproven address, both over the limit, count once', async (t) => {
  const both = decide(
    spent(1, [told(shadow, 5, 1000), told(shadow, 5, 1000), told(mark, 5, 1000), told(mark, 6, 1000)]),
    0,
  );
  t.match(both, { shadowDenials: { length: 1 }, marks: { length: 1 } });
});

t.test('a credential and its unproven address are one policy: the tighter one is reported', async (t) => {
  const parts = (key: number, address: number): Told[] => [
    told(five, key, 1000),
    told(five, address, 1000),
    told(hundred, 96, 1000),
  ];
  t.equal(text(decide(spent(1, parts(0, 3)), 0)), 'allow five:1 hundred:3');
  t.equal(text(decide(spent(1, parts(3, 0)), 0)), 'allow five:1 hundred:3');
  t.equal(
    text(decide(spent(0, parts(0, 5)), 0)),
    'deny five:0',
    'the address has used up its limit with invented keys',
  );
  t.equal(text(decide(spent(0, parts(5, 5)), 0)), 'deny five:0');
  t.equal(text(decide(spent(1, parts(3, -1)), 0)), 'allow five:1 hundred:3', 'skipped when proven');
});

t.test('without the store this process has its share of each limit, which may be zero', async (t) => {
  t.equal(text(decide(spent(1, [told(hundred, 10, 1000)], [25]), 0)), 'allow hundred:14');
  t.equal(text(decide(spent(0, [told(hundred, 25, 1000)], [25]), 0)), 'deny hundred:0');
  t.equal(text(decide(spent(0, [told(five, 0, 1000)], [0]), 0)), 'deny five:0');
});

t.test('a request without counters is allowed', async (t) => {
  t.strictSame(decide(spent(1, []), 0), { kind: 'allow', verdicts: [], shadowDenials: [], marks: [] });
});

t.test('Retry-After: whole seconds, the largest of the denying policies, at least 1', async (t) => {
  const verdict = (resetMs: number): Verdict => ({
    policy: five,
    capacity: five.limit,
    limit: five.limit,
    remaining: 0,
    resetMs,
  });
  const cases: readonly (readonly [resets: readonly number[], seconds: number])[] = [
    [[], 1],
    [[0], 1],
    [[1], 1],
    [[1000], 1],
    [[1001], 2],
    [[59_999.5], 60],
    [[1000, 3_600_000, 2000], 3600],
  ];
  for (const [resets, seconds] of cases)
    t.equal(retryAfterSeconds(resets.map(verdict), null), seconds, resets.join());
});

t.test('the random part of Retry-After is added to the time of its own policy', async (t) => {
  const ends: number[] = [];
  const most = (end: number): number => {
    ends.push(end);
    return end - 1;
  };
  const of = (resetMs: number, retryJitter: number) => ({ policy: { ...five, retryJitter }, resetMs });
  const cases: readonly (readonly [
    violated: readonly ReturnType<typeof of>[],
    most: number,
    least: number,
  ])[] = [
    [[of(30_001, 10)], 41, 31],
    [[of(0, 10)], 11, 1],
    [[of(30_000, 0)], 30, 30],
    [[of(60_000, 0), of(30_000, 10)], 60, 60],
    [[of(60_000, 0), of(55_000, 10)], 65, 60],
    [[of(60_000, 5), of(55_000, 20)], 75, 60],
  ];
  for (const [violated, longest, shortest] of cases) {
    t.equal(retryAfterSeconds(violated, most), longest);
    t.equal(
      retryAfterSeconds(violated, () => 0),
      shortest,
    );
  }
  t.strictSame(ends, [11, 11, 11, 11, 6, 21], 'drawn only for policies with retryJitter');
});
