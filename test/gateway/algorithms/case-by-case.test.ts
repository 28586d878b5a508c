/**
 * Tests each algorithm case by case: usage that is charged, given back or charged late, and the resulting state of the
 * counter. The memory store and the store's script must agree.
 */
import t from 'tap';
import { BucketState } from '#gateway/limiter/bucket-state.ts';
import type { Bucket } from '#gateway/limiter/charge.ts';
import type { Adjustment } from '#gateway/limiter/check.ts';
import { KnownCounters } from '#gateway/limiter/known-counters.ts';
import type { Algorithm } from '#gateway/policy/policy.ts';
import { asking, startScript } from '#test/support/script.ts';
import { part, policy } from '#test/support/spend.ts';

const WINDOW_MS = 10_000;
/** Start of a window. */
const START = 170_000_000 * WINDOW_MS;

interface Event {
  /** Milliseconds after the beginning of a window. */
  readonly at: number;
  readonly units: number;
  /** The time of the charge, if it is not now; negative units are given back. */
  readonly chargedAt?: number;
}

interface Expected {
  readonly now: number;
  readonly used: number;
  readonly resetMs: number;
  /** Time until there is room for one more. */
  readonly retryMs: number;
}

type Case = readonly [what: string, events: readonly Event[], expected: Expected];

const use = (at: number, units: number, chargedAt?: number): Event =>
  chargedAt === undefined ? { at, units } : { at, units, chargedAt };
const state = (now: number, used: number, resetMs: number, retryMs: number): Expected => ({
  now,
  used,
  resetMs,
  retryMs,
});

const LIMIT = 10;

const FIXED: readonly Case[] = [
  ['nothing', [], state(1, 0, 9999, 0)],
  ['counts until the end of the window', [use(0, 4), use(9000, 6)], state(9999, 10, 1, 1)],
  ['begins anew', [use(9999, 10)], state(10_000, 0, 10_000, 0)],
  ['takes back in the same window', [use(0, 5), use(9, -3, 0)], state(10, 2, 9990, 0)],
  ['never takes back more than there is', [use(0, 2), use(9, -3, 0), use(10, 1)], state(10, 1, 9990, 0)],
  [
    'takes nothing back that an earlier window counted',
    [use(9000, 5), use(10_000, 4), use(10_001, -3, 9000)],
    state(10_001, 4, 9999, 0),
  ],
  ['is charged late within its window', [use(8000, 3, 100), use(8001, 1)], state(8001, 4, 1999, 0)],
  ['is not charged for a window that has ended', [use(10_000, 3, 9999)], state(10_000, 0, 10_000, 0)],
  [
    'counts more than the limit, as an outage may leave it',
    [use(0, 10), use(1, 7, 0)],
    state(1, 17, 9999, 9999),
  ],
  [
    'holds no more than its record, whatever replies report',
    [use(0, 1), use(0, 4_000_000_000, 0), use(0, 4_000_000_000, 0)],
    state(1, 4_294_967_295, 9999, 9999),
  ],
];

/** Different values have a test of their own, distinct.test.ts. */
const CASES: Readonly<Record<Algorithm, readonly Case[]>> = {
  'fixed-window': FIXED,
  // The calendar of these tests has windows of the same length.
  'calendar-window': FIXED,
  'sliding-window': [
    ['nothing', [], state(1, 0, 0, 0)],
    ['the current window counts as a whole', [use(0, 10)], state(9999, 10, 10_001, 1001)],
    [
      'the one before by the part that still lies within a window, rounded up',
      [use(0, 10)],
      state(10_001, 10, 9999, 999),
    ],
    ['until nothing of it does', [use(9999, 10)], state(19_999, 1, 1, 0)],
    ['and two windows later it is gone', [use(9999, 10)], state(20_000, 0, 0, 0)],
    ['both windows', [use(0, 8), use(12_500, 4)], state(15_000, 8, 15_000, 0)],
    [
      'takes back from the window that counted it',
      [use(0, 8), use(12_500, 2), use(12_501, -4, 1)],
      state(15_000, 4, 15_000, 0),
    ],
    [
      'is charged late in the window that it belongs to',
      [use(12_500, 2), use(12_501, 4, 9999), use(12_502, 1, 10_000)],
      state(15_000, 5, 15_000, 0),
    ],
    ['is not charged for what is gone', [use(20_000, 4, 9999)], state(20_000, 0, 0, 0)],
    [
      'has room again when enough of what was used beyond the limit is gone',
      [use(0, 10), use(5000, 15, 5000)],
      state(5000, 25, 15_000, 11_400),
    ],
    [
      'holds no more than its record, whatever replies report',
      [use(0, 4_000_000_000, 0), use(0, 4_000_000_000, 0)],
      state(1, 4_294_967_295, 19_999, 19_999),
    ],
  ],
  'token-bucket': [
    ['nothing', [], state(1, 0, 0, 0)],
    ['a unit comes back every second', [use(0, 10)], state(2500, 8, 7500, 0)],
    ['which is not rounded down', [use(0, 10)], state(999, 10, 9001, 1)],
    ['until all of it is back', [use(0, 3)], state(3000, 0, 0, 0)],
    ['and no more', [use(0, 3), use(9000, 4)], state(9000, 4, 4000, 0)],
    ['takes back what has not come back by itself', [use(0, 6), use(2000, -3, 0)], state(2000, 3, 3000, 0)],
    ['takes nothing back that has', [use(0, 3), use(5000, 4), use(5000, -3, 0)], state(5000, 4, 4000, 0)],
    ['is charged late', [use(0, 3), use(1000, 2, 900)], state(1000, 4, 4000, 0)],
    [
      'has room again when what was used beyond it has come back',
      [use(0, 10), use(1000, 20, 1000)],
      state(1000, 29, 29_000, 20_000),
    ],
    [
      'holds a safe integer, whatever replies report',
      [use(0, 10_000_000_000_000, 0)],
      state(0, 450_359_962_738, 450_359_962_737_050, 450_359_962_728_050),
    ],
  ],
  concurrency: [
    ['nothing', [], state(1, 0, 0, 0)],
    ['requests in flight', [use(0, 3)], state(1, 3, 1000, 0)],
    ['as many as there may be', [use(0, 10)], state(1, 10, 1000, 1000)],
  ],
};

/** Charges a counter with all events in order. @returns its final contents */
type Store = (bucket: Bucket, events: readonly Event[], now: number) => Promise<BucketState>;

function adjustmentOf(bucket: Bucket, { units, chargedAt = 0 }: Event): Adjustment {
  return { bucket, amount: bucket.amountOf(units), chargedAt: START + chargedAt };
}

const memory: Store = async (bucket, events, now) => {
  const known = new KnownCounters({ countersMax: 8, credentialsMax: 8 });
  const stateAt = (at: number): BucketState =>
    new BucketState(bucket.policy, known.state(bucket, START + at), LIMIT, LIMIT);
  for (const [i, event] of events.entries()) {
    if (event.chargedAt !== undefined) known.adjust(adjustmentOf(bucket, event), START + event.at);
    else if (bucket.policy.algorithm !== 'concurrency')
      known.set(bucket, stateAt(event.at).after(event.units));
    else for (let k = 0; k < event.units; k++) known.leases.take({ key: bucket.key, member: `${i}.${k}` }, 0);
  }
  return stateAt(now);
};

t.test('every algorithm gives the counters of the table', async (t) => {
  const { redis, ask } = await startScript(t);
  /** @param errorMs error of the gateway's estimate of the store's clock */
  const scriptWith =
    (errorMs: number): Store =>
    async (bucket, events, now) => {
      await redis.client.flushall();
      for (const [i, event] of events.entries()) {
        const at = START + event.at;
        if (event.chargedAt !== undefined) await ask(at, [], [adjustmentOf(bucket, event)], at + errorMs);
        else await ask(at, [asking(bucket, event.units, `${i}`)], [], at - errorMs);
      }
      const [answer] = await ask(START + now, [asking(bucket, 0)], [], START + now + errorMs);
      const state = answer?.spent.states[0] ?? null;
      if (state === null) throw new Error('it is charged');
      return state;
    };
  const stores: Readonly<Record<string, Store>> = {
    memory,
    script: scriptWith(0),
    'script, the estimate of its clock ahead or behind': scriptWith(WINDOW_MS - 1),
    'script, the estimate of its clock behind or ahead': scriptWith(1 - WINDOW_MS),
  };
  for (const [algorithm, cases] of Object.entries(CASES) as [Algorithm, readonly Case[]][]) {
    const bucket = part(policy('p', LIMIT, WINDOW_MS / 1000, { algorithm }));
    for (const [what, events, { now, ...expected }] of cases)
      for (const [name, store] of Object.entries(stores)) {
        const state = await store(bucket, events, now);
        const { used } = state;
        const found = { used, resetMs: state.resetMs(0), retryMs: state.retryMs(0, 1) };
        t.strictSame(found, expected, `${algorithm}, ${name}: ${what}`);
      }
  }
});
