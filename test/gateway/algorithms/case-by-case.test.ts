/**
 * Tests each algorithm case by case: usage that is charged, given back or charged late, and the resulting state of the
 * counter. The memory store and the store's script must agree.
 */
import { join } from 'node:path';
import t from 'tap';
import { BucketState } from '#gateway/limiter/bucket-state.ts';
import type { Bucket } from '#gateway/limiter/charge.ts';
import type { Adjustment } from '#gateway/limiter/check.ts';
import { KnownCounters } from '#gateway/limiter/known-counters.ts';
import type { Algorithm } from '#gateway/policy/policy.ts';
import { arrowCases } from '#test/support/arrow-cases.ts';
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

const LIMIT = 10;

/** Different values have a test of their own, distinct.test.ts. */
const CASES = arrowCases(join(import.meta.dirname, 'case-by-case.md')).flatMap(({ heading, cases }) => {
  const read = cases.map(([what = '', events = '', expected = '']): Case => {
    const [now = 0, used = 0, resetMs = 0, retryMs = 0] = numbersIn(expected);
    return [what, events === 'none' ? [] : events.split(', ').map(eventOf), { now, used, resetMs, retryMs }];
  });
  const alike: readonly string[] = heading === 'fixed-window' ? [heading, 'calendar-window'] : [heading];
  return alike.map((algorithm) => [algorithm as Algorithm, read] as const);
});

function numbersIn(text: string): number[] {
  return [...text.matchAll(/-?\d+/g)].map(Number);
}

function eventOf(text: string): Event {
  const [at = 0, units = 0, chargedAt] = numbersIn(text);
  return chargedAt === undefined ? { at, units } : { at, units, chargedAt };
}

/** Charges a counter with all events in order. @returns its final contents */
type Store = (bucket: Bucket, events: readonly Event[], now: number) => Promise<BucketState>;

function adjustmentOf(bucket: Bucket, { units, chargedAt = 0 }: Event): Adjustment {
  return { bucket, amount: bucket.amountOf(units), chargedAt: START + chargedAt };
}

const memory: Store = async (bucket, events, now) => {
  const known = new KnownCounters({ countersMax: 8 });
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
  for (const [algorithm, cases] of CASES) {
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
