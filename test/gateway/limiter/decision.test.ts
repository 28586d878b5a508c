import { join } from 'node:path';
import t from 'tap';
import { BucketState } from '#gateway/limiter/bucket-state.ts';
import { type Decision, decide } from '#gateway/limiter/decision.ts';
import { retryAfterSeconds, type Spent } from '#gateway/limiter/limiter.ts';
import type { Policy } from '#gateway/policy/policy.ts';
import { arrowCases, casesUnder } from '#test/support/arrow-cases.ts';
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

const KNOWN: Readonly<Record<string, Policy>> = { five, hundred, hourly, shadow, mark };

const CASES = join(import.meta.dirname, 'decision.md');
const RETRY_AFTER =
  'Retry-After: whole seconds, the largest of the denying policies, and a random part of its own policy';

for (const { heading, cases } of arrowCases(CASES)) {
  if (heading === RETRY_AFTER) continue;
  t.test(heading, async (t) => {
    for (const [asked = '', expected] of cases) {
      const [, admitted, list = '', share, position] =
        /^(\d+) of (.*?)(?: share (\d+))?: (\d+)$/.exec(asked) ?? [];
      const buckets = list.split(', ').map((bucket) => {
        const [name = '', used, resetMs] = bucket.split(' ');
        return told(KNOWN[name] as Policy, Number(used), Number(resetMs));
      });
      const shares = share === undefined ? [] : [Number(share)];
      t.equal(text(decide(spent(Number(admitted), buckets, shares), Number(position))), expected, asked);
    }
  });
}

t.test('an allowed request has what is left of each policy', async (t) => {
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
    },
  );

t.test('a credential and its unproven address, both over the limit, count once', async (t) => {
  const both = decide(
    spent(1, [told(shadow, 5, 1000), told(shadow, 5, 1000), told(mark, 5, 1000), told(mark, 6, 1000)]),
    0,
  );
  t.match(both, { shadowDenials: { length: 1 }, marks: { length: 1 } });
});

t.test('a request without counters is allowed', async (t) => {
  t.strictSame(decide(spent(1, []), 0), { kind: 'allow', verdicts: [], shadowDenials: [], marks: [] });
});

t.test(RETRY_AFTER, async (t) => {
  for (const [violated = '', longest, shortest] of casesUnder(CASES, RETRY_AFTER)) {
    const rows = violated === 'none' ? [] : violated.split(', ').map((row) => row.split(' ').map(Number));
    const drawn: number[] = [];
    const secondsWith = (most: (end: number) => number): string =>
      String(
        retryAfterSeconds(
          rows.map(([resetMs = 0, retryJitter = 0]) => ({ policy: { ...five, retryJitter }, resetMs })),
          most,
        ),
      );
    const last = secondsWith((end) => {
      drawn.push(end);
      return end - 1;
    });
    t.strictSame([last, secondsWith(() => 0)], [longest, shortest], violated);
    t.strictSame(
      drawn,
      rows.flatMap(([, jitter = 0]) => (jitter === 0 ? [] : [jitter + 1])),
      `${violated}: drawn only for policies with retryJitter`,
    );
  }
});
