/**
 * Different values in a window, case by case: what passes, what is charged late, and what is never given back. The memory
 * store and the store's script must agree.
 */
import t from 'tap';
import type { Bucket } from '#gateway/limiter/charge.ts';
import {
  type Adjustment,
  type Answer,
  type PendingCheck,
  readReply,
  scriptCall,
} from '#gateway/limiter/check.ts';
import { KnownCounters } from '#gateway/limiter/known-counters.ts';
import { SPEND } from '#gateway/limiter/script.ts';
import { StoreClock } from '#gateway/limiter/store-clock.ts';
import { UsedValues } from '#gateway/limiter/used-values.ts';
import { testClock } from '#test/support/clock.ts';
import { startRedis } from '#test/support/redis.ts';
import { chargeOf, memoryLimiter, part, policy, spend, withValue } from '#test/support/spend.ts';

const WINDOW_MS = 10_000;
const START = 170_000_000 * WINDOW_MS;
const LIMIT = 3;
const ALGORITHMS = ['distinct-fixed-window', 'distinct-calendar-window'] as const;
const nobody = { onSpent() {}, onStoreUnavailable() {} };

/** A name asks, and `+name` is charged late for the start of the window. `-name` is given back. */
type Events = readonly (readonly [at: number, what: string])[];

const CASES: readonly (readonly [what: string, events: Events, passing: string, used: number])[] = [
  [
    'up to the limit',
    [
      [0, 'a'],
      [1, 'b'],
      [2, 'c'],
      [3, 'd'],
    ],
    'a b c',
    3,
  ],
  [
    'again and again',
    [
      [0, 'a'],
      [1, 'b'],
      [2, 'c'],
      [3, 'a'],
      [9999, 'c'],
      [9999, 'd'],
    ],
    'a b c a c',
    3,
  ],
  [
    'a new window begins anew',
    [
      [0, 'a'],
      [1, 'b'],
      [2, 'c'],
      [10_000, 'd'],
      [10_001, 'a'],
    ],
    'a b c d a',
    2,
  ],
  [
    'late, a value counts once',
    [
      [5, '+a'],
      [6, 'a'],
      [7, '+a'],
      [8, 'b'],
      [9, '+b'],
    ],
    'a b',
    2,
  ],
  [
    'late, beyond the limit',
    [
      [0, 'a'],
      [1, 'b'],
      [2, 'c'],
      [3, '+d'],
      [4, 'd'],
      [5, 'e'],
    ],
    'a b c d',
    4,
  ],
  [
    'late, no more than twice the limit is stored',
    ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'].map((name, at) => [at, `+${name}`] as const),
    '',
    6,
  ],
  [
    'late, not for a window that has ended',
    [
      [10_000, '+a'],
      [10_001, 'b'],
    ],
    'b',
    1,
  ],
  [
    'nothing is given back',
    [
      [0, 'a'],
      [1, 'b'],
      [2, '-a'],
      [3, '-c'],
      [4, 'a'],
      [5, 'c'],
    ],
    'a b a c',
    3,
  ],
];

t.test('Redis and memory agree on every case', async (t) => {
  const redis = await startRedis(t);
  const lua = SPEND.lua.replace("call('TIME')", '{ ARGV[2], ARGV[3] }');
  const run = async (
    at: number,
    checks: readonly PendingCheck[],
    adjustments: readonly Adjustment[] = [],
  ) => {
    const now = START + at;
    const { keys, args } = scriptCall(now, checks, adjustments);
    const time = [String(Math.floor(now / 1000)), String((now % 1000) * 1000)];
    return readReply(await redis.client.eval(lua, keys.length, ...keys, ...args, ...time), checks);
  };
  for (const algorithm of ALGORITHMS)
    for (const [what, events, passing, used] of CASES) {
      await redis.client.flushall();
      const base = part(policy('p', LIMIT, WINDOW_MS / 1000, { algorithm }));
      const ofStore: string[] = [];
      let last: Answer | undefined;
      for (const [at, event] of events) {
        const bucket = withValue(base, event.replace(/[+-]/, ''));
        if (/[+-]/.test(event)) {
          const amount = event.startsWith('+') ? 1 : -1;
          await run(at, [], [{ bucket, amount, chargedAt: START + (at < WINDOW_MS ? 0 : at - WINDOW_MS) }]);
          continue;
        }
        const check = { charge: chargeOf(bucket), listeners: [nobody, nobody], leases: null };
        [last] = await run(at, [check]);
        if (last?.spent.admitted === 2) ofStore.push(event);
      }
      t.equal(ofStore.join(' '), passing, `${algorithm}: ${what}`);
      const probe = { charge: chargeOf(withValue(base, 'probe')), listeners: [], leases: null };
      [last] = await run(events.at(-1)?.[0] ?? 0, [probe]);
      t.equal(last?.spent.states[0]?.used, used, `${algorithm}: ${what}: used`);
      if (events.some(([, event]) => /[+-]/.test(event))) continue;
      const clock = testClock(START);
      const memory = memoryLimiter({ clock: clock.now });
      const ofMemory: string[] = [];
      for (const [at, event] of events) {
        clock.advance(START + at - clock.now());
        const answer = await spend(memory, chargeOf(withValue(base, event)));
        if (answer.kind === 'spent' && answer.admitted) ofMemory.push(event);
      }
      t.equal(ofMemory.join(' '), passing, `${algorithm}, memory: ${what}`);
    }
});

t.test('contents that are no values count as none, and are replaced', async (t) => {
  const redis = await startRedis(t);
  const lua = SPEND.lua.replace("call('TIME')", '{ ARGV[2], ARGV[3] }');
  const bucket = withValue(part(policy('p', 2, 10, { algorithm: 'distinct-fixed-window' })), 'a');
  const checks = [{ charge: chargeOf(bucket), listeners: [nobody], leases: null }];
  const { keys, args } = scriptCall(START, checks);
  const window = START / WINDOW_MS;
  const { client } = redis;
  const contents: readonly (readonly [what: string, put: () => Promise<unknown>])[] = [
    ['a text', () => client.set(bucket.key, `${window} a`)],
    ['a list', () => client.lpush(bucket.key, 'a', 'b')],
    ['a set', () => client.sadd(bucket.key, '', 'b')],
    ['a hash without a window', () => client.hset(bucket.key, 'b', '', 'c', '')],
    ['a hash whose window is no number', () => client.hset(bucket.key, '', '"]', 'b', '', 'c', '')],
    ['a hash of an earlier window', () => client.hset(bucket.key, '', `${window - 1}`, 'b', '', 'c', '')],
  ];
  for (const [what, put] of contents) {
    await client.del(bucket.key);
    await put();
    const reply = await client.eval(lua, keys.length, ...keys, ...args, String(START / 1000), '0');
    t.match(readReply(reply, checks)[0]?.spent, { admitted: 1, states: [{ used: 0 }] }, what);
    t.strictSame((await client.hkeys(bucket.key)).sort(), ['', bucket.value], what);
    t.equal(Number(await client.hget(bucket.key, '')), window, what);
    t.ok((await client.pttl(bucket.key)) > 0, `${what}: it expires`);
  }
});

t.test('a lowered limit denies new values only, and a raised one applies at once', async (t) => {
  const clock = testClock(START);
  const memory = memoryLimiter({ clock: clock.now });
  const ask = async (limit: number, value: string): Promise<boolean> => {
    const bucket = withValue(part(policy('p', limit, 10, { algorithm: 'distinct-fixed-window' })), value);
    const answer = await spend(memory, chargeOf(bucket));
    return answer.kind === 'spent' && answer.admitted;
  };
  for (const value of ['a', 'b', 'c']) t.ok(await ask(3, value));
  t.strictSame(
    [await ask(1, 'c'), await ask(1, 'd'), await ask(4, 'd'), await ask(4, 'e')],
    [true, false, true, false],
  );
});

t.test('a process denies from memory only if it knows all values, and none of them', async (t) => {
  const redis = await startRedis(t);
  const clock = testClock(START);
  const storeClock = new StoreClock(clock.now);
  const lua = SPEND.lua.replace("call('TIME')", '{ ARGV[2], ARGV[3] }');
  const ask = async (known: KnownCounters, bucket: Bucket): Promise<boolean> => {
    if (known.exhausted(chargeOf(bucket), clock.now(), storeClock) !== null) return false;
    const checks = [{ charge: chargeOf(bucket), listeners: [nobody], leases: null }];
    const { keys, args } = scriptCall(clock.now(), checks);
    const time = [String(clock.now() / 1000), '0'];
    const answers = readReply(await redis.client.eval(lua, keys.length, ...keys, ...args, ...time), checks);
    for (const answer of answers) known.learn(answer, clock.now(), clock.now());
    return answers[0]?.spent.admitted === 1;
  };
  for (const limit of [3, 100]) {
    const base = part(policy(`p${limit}`, limit, 10, { algorithm: 'distinct-fixed-window' }));
    const [one, two] = [0, 1].map(() => new KnownCounters({ countersMax: 1024, credentialsMax: 8 }));
    if (one === undefined || two === undefined) throw new Error('there are two');
    for (let i = 0; i < limit; i++) t.ok(await ask(i % 2 === 0 ? one : two, withValue(base, `v${i}`)));
    const isDenied = (known: KnownCounters, value: string): boolean =>
      known.exhausted(chargeOf(withValue(base, value)), clock.now(), storeClock) !== null;
    t.notOk(
      isDenied(one, 'new') || isDenied(one, 'v1'),
      'the other process has used values that this one lacks',
    );
    t.notOk(await ask(one, withValue(base, 'new')));
    t.equal(isDenied(one, 'newer'), limit === 3, 'the store tells a short list');
    for (let i = 0; i < limit; i++) t.ok(await ask(one, withValue(base, `v${i}`)), 'used values pass');
    t.ok(isDenied(one, 'newest'), 'after all values have passed here, all are known');
    one.forget(base.identity, [base.counter]);
    t.notOk(isDenied(one, 'newest'), 'after a reset nothing is');
  }
});

t.test('memory holds a bounded number of values', async (t) => {
  const base = part(policy('p', 5, 10, { algorithm: 'distinct-fixed-window' }));
  const values = new UsedValues(10);
  for (let i = 0; i < 100; i++) values.add(withValue(base, `v${i}`), START);
  t.ok(values.size <= 10, 'more values of one bucket than there may be altogether');
  for (let i = 0; i < 100; i++) values.add(withValue(part(base.policy, `client ${i}`), 'v'), START);
  t.equal(values.size, 10);
  t.ok(values.has(withValue(part(base.policy, 'client 99'), 'v'), START));
  t.notOk(values.has(withValue(part(base.policy, 'client 89'), 'v'), START), 'the oldest were dropped');
  values.moveTimes(WINDOW_MS);
  t.ok(values.has(withValue(part(base.policy, 'client 99'), 'v'), START + WINDOW_MS));
  values.clear();
  t.equal(values.size, 0);

  const clock = testClock(START);
  const known = new KnownCounters({ countersMax: 1024, credentialsMax: 8 });
  const memory = memoryLimiter({ clock: clock.now, known });
  let admitted = 0;
  for (let i = 0; i < 100_000; i++) {
    const answer = await spend(memory, chargeOf(withValue(base, `flood ${i}`)));
    if (answer.kind === 'spent' && answer.admitted) admitted++;
  }
  t.strictSame([admitted, known.values.size], [5, 5], 'after 100,000 values of one client');
});
