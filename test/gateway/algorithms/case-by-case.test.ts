/**
 * Tests each algorithm case by case: usage that is charged, given back or charged late, and the resulting state of the
 * counter. The memory store and the store's script must agree.
 */
import t from 'tap';
import { BucketState } from '#gateway/limiter/bucket-state.ts';
import type { Bucket } from '#gateway/limiter/charge.ts';
import { type Adjustment, type PendingCheck, readReply, scriptCall } from '#gateway/limiter/check.ts';
import { KnownCounters } from '#gateway/limiter/known-counters.ts';
import { SPEND } from '#gateway/limiter/script.ts';
import type { Algorithm } from '#gateway/policy/policy.ts';
import { startRedis } from '#test/support/redis.ts';
import { chargeOf, part, policy } from '#test/support/spend.ts';

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

interface Case {
  readonly what: string;
  readonly events: readonly Event[];
  readonly now: number;
  readonly used: number;
  readonly resetMs: number;
  /** Time until there is room for one more. */
  readonly retryMs: number;
}

const LIMIT = 10;

const FIXED: readonly Case[] = [
  { what: 'nothing', events: [], now: 1, used: 0, resetMs: 9999, retryMs: 0 },
  {
    what: 'counts until the end of the window',
    events: [
      { at: 0, units: 4 },
      { at: 9000, units: 6 },
    ],
    now: 9999,
    used: 10,
    resetMs: 1,
    retryMs: 1,
  },
  {
    what: 'begins anew',
    events: [{ at: 9999, units: 10 }],
    now: 10_000,
    used: 0,
    resetMs: 10_000,
    retryMs: 0,
  },
  {
    what: 'takes back in the same window',
    events: [
      { at: 0, units: 5 },
      { at: 9, units: -3, chargedAt: 0 },
    ],
    now: 10,
    used: 2,
    resetMs: 9990,
    retryMs: 0,
  },
  {
    what: 'never takes back more than there is',
    events: [
      { at: 0, units: 2 },
      { at: 9, units: -3, chargedAt: 0 },
      { at: 10, units: 1 },
    ],
    now: 10,
    used: 1,
    resetMs: 9990,
    retryMs: 0,
  },
  {
    what: 'takes nothing back that an earlier window counted',
    events: [
      { at: 9000, units: 5 },
      { at: 10_000, units: 4 },
      { at: 10_001, units: -3, chargedAt: 9000 },
    ],
    now: 10_001,
    used: 4,
    resetMs: 9999,
    retryMs: 0,
  },
  {
    what: 'is charged late within its window',
    events: [
      { at: 8000, units: 3, chargedAt: 100 },
      { at: 8001, units: 1 },
    ],
    now: 8001,
    used: 4,
    resetMs: 1999,
    retryMs: 0,
  },
  {
    what: 'is not charged for a window that has ended',
    events: [{ at: 10_000, units: 3, chargedAt: 9999 }],
    now: 10_000,
    used: 0,
    resetMs: 10_000,
    retryMs: 0,
  },
  {
    what: 'counts more than the limit, as an outage may leave it',
    events: [
      { at: 0, units: 10 },
      { at: 1, units: 7, chargedAt: 0 },
    ],
    now: 1,
    used: 17,
    resetMs: 9999,
    retryMs: 9999,
  },
  {
    what: 'holds no more than its record, whatever replies report',
    events: [
      { at: 0, units: 1 },
      { at: 0, units: 4_000_000_000, chargedAt: 0 },
      { at: 0, units: 4_000_000_000, chargedAt: 0 },
    ],
    now: 1,
    used: 4_294_967_295,
    resetMs: 9999,
    retryMs: 9999,
  },
];

const CASES: Readonly<Record<Algorithm, readonly Case[]>> = {
  'fixed-window': FIXED,
  // The calendar of these tests has windows of the same length.
  'calendar-window': FIXED,
  'sliding-window': [
    { what: 'nothing', events: [], now: 1, used: 0, resetMs: 0, retryMs: 0 },
    {
      what: 'the current window counts as a whole',
      events: [{ at: 0, units: 10 }],
      now: 9999,
      used: 10,
      resetMs: 10_001,
      retryMs: 1001,
    },
    {
      what: 'the one before by the part that still lies within a window, rounded up',
      events: [{ at: 0, units: 10 }],
      now: 10_001,
      used: 10,
      resetMs: 9999,
      retryMs: 999,
    },
    {
      what: 'until nothing of it does',
      events: [{ at: 9999, units: 10 }],
      now: 19_999,
      used: 1,
      resetMs: 1,
      retryMs: 0,
    },
    {
      what: 'and two windows later it is gone',
      events: [{ at: 9999, units: 10 }],
      now: 20_000,
      used: 0,
      resetMs: 0,
      retryMs: 0,
    },
    {
      what: 'both windows',
      events: [
        { at: 0, units: 8 },
        { at: 12_500, units: 4 },
      ],
      now: 15_000,
      used: 8,
      resetMs: 15_000,
      retryMs: 0,
    },
    {
      what: 'takes back from the window that counted it',
      events: [
        { at: 0, units: 8 },
        { at: 12_500, units: 2 },
        { at: 12_501, units: -4, chargedAt: 1 },
      ],
      now: 15_000,
      used: 4,
      resetMs: 15_000,
      retryMs: 0,
    },
    {
      what: 'is charged late in the window that it belongs to',
      events: [
        { at: 12_500, units: 2 },
        { at: 12_501, units: 4, chargedAt: 9999 },
        { at: 12_502, units: 1, chargedAt: 10_000 },
      ],
      now: 15_000,
      used: 5,
      resetMs: 15_000,
      retryMs: 0,
    },
    {
      what: 'is not charged for what is gone',
      events: [{ at: 20_000, units: 4, chargedAt: 9999 }],
      now: 20_000,
      used: 0,
      resetMs: 0,
      retryMs: 0,
    },
    {
      what: 'has room again when enough of what was used beyond the limit is gone',
      events: [
        { at: 0, units: 10 },
        { at: 5000, units: 15, chargedAt: 5000 },
      ],
      now: 5000,
      used: 25,
      resetMs: 15_000,
      retryMs: 11_400,
    },
    {
      what: 'holds no more than its record, whatever replies report',
      events: [
        { at: 0, units: 4_000_000_000, chargedAt: 0 },
        { at: 0, units: 4_000_000_000, chargedAt: 0 },
      ],
      now: 1,
      used: 4_294_967_295,
      resetMs: 19_999,
      retryMs: 19_999,
    },
  ],
  'token-bucket': [
    { what: 'nothing', events: [], now: 1, used: 0, resetMs: 0, retryMs: 0 },
    {
      what: 'a unit comes back every second',
      events: [{ at: 0, units: 10 }],
      now: 2500,
      used: 8,
      resetMs: 7500,
      retryMs: 0,
    },
    {
      what: 'which is not rounded down',
      events: [{ at: 0, units: 10 }],
      now: 999,
      used: 10,
      resetMs: 9001,
      retryMs: 1,
    },
    {
      what: 'until all of it is back',
      events: [{ at: 0, units: 3 }],
      now: 3000,
      used: 0,
      resetMs: 0,
      retryMs: 0,
    },
    {
      what: 'and no more',
      events: [
        { at: 0, units: 3 },
        { at: 9000, units: 4 },
      ],
      now: 9000,
      used: 4,
      resetMs: 4000,
      retryMs: 0,
    },
    {
      what: 'takes back what has not come back by itself',
      events: [
        { at: 0, units: 6 },
        { at: 2000, units: -3, chargedAt: 0 },
      ],
      now: 2000,
      used: 3,
      resetMs: 3000,
      retryMs: 0,
    },
    {
      what: 'takes nothing back that has',
      events: [
        { at: 0, units: 3 },
        { at: 5000, units: 4 },
        { at: 5000, units: -3, chargedAt: 0 },
      ],
      now: 5000,
      used: 4,
      resetMs: 4000,
      retryMs: 0,
    },
    {
      what: 'is charged late',
      events: [
        { at: 0, units: 3 },
        { at: 1000, units: 2, chargedAt: 900 },
      ],
      now: 1000,
      used: 4,
      resetMs: 4000,
      retryMs: 0,
    },
    {
      what: 'has room again when what was used beyond it has come back',
      events: [
        { at: 0, units: 10 },
        { at: 1000, units: 20, chargedAt: 1000 },
      ],
      now: 1000,
      used: 29,
      resetMs: 29_000,
      retryMs: 20_000,
    },
    {
      what: 'holds a safe integer, whatever replies report',
      events: [{ at: 0, units: 10_000_000_000_000, chargedAt: 0 }],
      now: 0,
      used: 450_359_962_738,
      resetMs: 450_359_962_737_050,
      retryMs: 450_359_962_728_050,
    },
  ],
  concurrency: [
    { what: 'nothing', events: [], now: 1, used: 0, resetMs: 0, retryMs: 0 },
    { what: 'requests in flight', events: [{ at: 0, units: 3 }], now: 1, used: 3, resetMs: 1000, retryMs: 0 },
    {
      what: 'as many as there may be',
      events: [{ at: 0, units: 10 }],
      now: 1,
      used: 10,
      resetMs: 1000,
      retryMs: 1000,
    },
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
  const redis = await startRedis(t);
  const lua = SPEND.lua.replace("call('TIME')", '{ ARGV[2], ARGV[3] }');
  const run = async (
    at: number,
    errorMs: number,
    checks: readonly PendingCheck[],
    adjustments: readonly Adjustment[] = [],
  ) => {
    const now = START + at;
    const { keys, args } = scriptCall(now + errorMs, checks, adjustments);
    const time = [String(Math.floor(now / 1000)), String((now % 1000) * 1000)];
    return readReply(await redis.client.eval(lua, keys.length, ...keys, ...args, ...time), checks);
  };
  const asking = (bucket: Bucket, times: number, leases: string | null): PendingCheck => ({
    charge: chargeOf(bucket),
    listeners: Array.from({ length: times }, () => ({ onSpent() {}, onStoreUnavailable() {} })),
    leases,
  });
  /** @param errorMs error of the gateway's estimate of the store's clock */
  const scriptWith =
    (errorMs: number): Store =>
    async (bucket, events, now) => {
      await redis.client.flushall();
      for (const [i, event] of events.entries()) {
        if (event.chargedAt !== undefined) await run(event.at, errorMs, [], [adjustmentOf(bucket, event)]);
        else await run(event.at, -errorMs, [asking(bucket, event.units, `${i}`)]);
      }
      const [answer] = await run(now, errorMs, [asking(bucket, 0, null)]);
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
    for (const { what, events, now, ...expected } of cases)
      for (const [name, store] of Object.entries(stores)) {
        const state = await store(bucket, events, now);
        const { used } = state;
        const found = { used, resetMs: state.resetMs(0), retryMs: state.retryMs(0, 1) };
        t.strictSame(found, expected, `${algorithm}, ${name}: ${what}`);
      }
  }
});
