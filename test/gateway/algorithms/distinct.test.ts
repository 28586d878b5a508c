/**
 * Different values in a window, case by case: what passes, what is charged late, and what is never given back. The memory
 * store and the store's script must agree.
 */
import t from 'tap';
import type { Answer } from '#gateway/limiter/check.ts';
import { KnownCounters } from '#gateway/limiter/known-counters.ts';
import { testClock } from '#test/support/clock.ts';
import { asking, startScript } from '#test/support/script.ts';
import { chargeOf, memoryLimiter, part, policy, spend, VALUES, withValue } from '#test/support/spend.ts';

const WINDOW_MS = 10_000;
const START = 170_000_000 * WINDOW_MS;
const LIMIT = 3;
const ALGORITHMS = ['fixed-window', 'calendar-window'] as const;

/** `time name`: the name asks. `time +name`: it is charged late for the start of the window. `time -name`: it is given back. */
const CASES: readonly (readonly [what: string, events: string, passing: string, used: number])[] = [
  ['up to the limit', '0 a, 1 b, 2 c, 3 d', 'a b c', 3],
  ['again and again', '0 a, 1 b, 2 c, 3 a, 9999 c, 9999 d', 'a b c a c', 3],
  ['a new window begins anew', '0 a, 1 b, 2 c, 10000 d, 10001 a', 'a b c d a', 2],
  ['late, a value counts once', '5 +a, 6 a, 7 +a, 8 b, 9 +b', 'a b', 2],
  ['late, beyond the limit', '0 a, 1 b, 2 c, 3 +d, 4 d, 5 e', 'a b c d', 4],
  ['late, not for a window that has ended', '10000 +a, 10001 b', 'b', 1],
  ['nothing is given back', '0 a, 1 b, 2 -a, 3 -c, 4 a, 5 c', 'a b a c', 3],
];

function eventsOf(text: string): readonly (readonly [at: number, what: string])[] {
  return text.split(', ').map((event) => {
    const [at = '', what = ''] = event.split(' ');
    return [Number(at), what];
  });
}

t.test('Redis and memory agree on every case', async (t) => {
  const { redis, ask } = await startScript(t);
  for (const algorithm of ALGORITHMS)
    for (const [what, text, passing, used] of CASES) {
      const events = eventsOf(text);
      await redis.client.flushall();
      const base = part(policy('p', LIMIT, WINDOW_MS / 1000, { ...VALUES, algorithm }));
      const ofStore: string[] = [];
      let last: Answer | undefined;
      for (const [at, event] of events) {
        const bucket = withValue(base, event.replace(/[+-]/, ''));
        if (/[+-]/.test(event)) {
          const amount = event.startsWith('+') ? 1 : -1;
          await ask(
            START + at,
            [],
            [{ bucket, amount, chargedAt: START + (at < WINDOW_MS ? 0 : at - WINDOW_MS) }],
          );
          continue;
        }
        [last] = await ask(START + at, [asking(bucket, 2)]);
        if (last?.spent.admitted === 2) ofStore.push(event);
      }
      t.equal(ofStore.join(' '), passing, `${algorithm}: ${what}`);
      [last] = await ask(START + (events.at(-1)?.[0] ?? 0), [asking(withValue(base, 'probe'), 0)]);
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

t.test('a marker that cannot be read counts as none, and is replaced', async (t) => {
  const { redis, askOne } = await startScript(t);
  const { client } = redis;
  const bucket = withValue(part(policy('p', 2, 10, VALUES)), 'a');
  const { valueKey } = bucket;
  if (valueKey === null) throw new Error('there is a value');
  const contents: readonly (readonly [what: string, put: () => Promise<unknown>])[] = [
    ['a text', () => client.set(valueKey, 'used')],
    ['a list', () => client.lpush(valueKey, `${START + WINDOW_MS}`)],
    ['a hash', () => client.hset(valueKey, '', `${START + WINDOW_MS}`)],
    ['the end of an earlier window', () => client.set(valueKey, `${START}`)],
  ];
  for (const [what, put] of contents) {
    await client.flushall();
    await put();
    t.match(await askOne(START, bucket), { admitted: 1, states: [{ used: 0, what: 'new-value' }] }, what);
    t.equal(await client.get(valueKey), `${START + WINDOW_MS}`, what);
    t.ok((await client.pttl(valueKey)) > 0, `${what}: it expires`);
  }
});

t.test('memory holds a bounded number of values, in the window in which they were used', async (t) => {
  const known = new KnownCounters({ countersMax: 32 });
  const base = part(policy('p', 5, 10, VALUES));
  const whatOf = (value: string, now: number) => known.whatOf(withValue(base, value), now);
  for (let i = 0; i < 100; i++) known.use(withValue(base, `v${i}`), START);
  t.equal(known.size, 8);
  t.equal(whatOf('v99', START), 'used-value');
  t.equal(whatOf('v91', START), 'new-value', 'the oldest were dropped');
  t.equal(whatOf('v99', START + WINDOW_MS), 'new-value', 'a new window');
  known.moveTimes(WINDOW_MS);
  t.equal(whatOf('v99', START + WINDOW_MS), 'used-value');
  known.forgetCounters();
  t.equal(known.size, 0);

  const clock = testClock(START);
  const memory = memoryLimiter({ clock: clock.now, known });
  let admitted = 0;
  for (let i = 0; i < 10_000; i++) {
    const answer = await spend(memory, chargeOf(withValue(base, `flood ${i}`)));
    if (answer.kind === 'spent' && answer.admitted) admitted++;
  }
  t.strictSame([admitted, known.size], [5, 6], 'after 10,000 values of one client');
});
