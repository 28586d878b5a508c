/** What only the counters of this process have: a bound of their own, and a clock that need not be whole. */
import t from 'tap';
import { MemoryLimiter } from '#gateway/limiter/memory.ts';
import { testClock } from '#test/support/clock.ts';
import { bucket, burst, Charge, policy, proof, spend } from '#test/support/spend.ts';

const oneOf = (identity: string): Charge => new Charge([bucket(policy('p', 1, 3600), identity)], null);

t.test('a full map forgets its oldest counter, and only that one', async (t) => {
  const limiter = new MemoryLimiter({ clock: testClock().now, countersMax: 3 });
  t.teardown(() => limiter.close());
  for (const identity of ['a', 'b', 'c', 'd']) t.equal(await burst(limiter, oneOf(identity), 2), 1);
  for (const identity of ['b', 'c', 'd']) t.equal(await burst(limiter, oneOf(identity), 1), 0, identity);
  t.equal(await burst(limiter, oneOf('a'), 1), 1, 'forgotten');
});

t.test('a flood beyond the bound costs no more than one within it', async (t) => {
  // Looked for from the start each time, the oldest of so many lies behind a long row of gaps: minutes in all.
  const countersMax = 200_000;
  const limiter = new MemoryLimiter({ clock: testClock().now, countersMax });
  t.teardown(() => limiter.close());
  const p = policy('p', 1, 3600);
  let admitted = 0;
  const waiter = { onSpent: () => void admitted++, onStoreUnavailable: () => t.fail('there is no store') };
  for (let i = 0; i < 4 * countersMax; i++) limiter.spend(new Charge([bucket(p, `id-${i}`)], null), waiter);
  t.equal(admitted, 4 * countersMax);
});

t.test('window edges on a clock with fractions: never a window of two lengths, never none', async (t) => {
  const clock = testClock(Date.UTC(2026, 0, 1) - 0.25);
  const limiter = new MemoryLimiter({ clock: clock.now });
  t.teardown(() => limiter.close());
  const b = bucket(policy('p', 2, 60));
  const charge = new Charge([b], null);
  t.equal(await burst(limiter, charge, 3), 2, 'a quarter of a millisecond before the edge');
  t.ok(b.exhaustedUntil < clock.now(), 'too little left to remember');
  clock.advance(0.25);
  t.equal(await burst(limiter, charge, 3), 2, 'at the edge');
  t.ok(b.exhaustedUntil > clock.now() && b.exhaustedUntil <= clock.now() + 60_000 - 1);
  clock.advance(59_999.75);
  const denied = await spend(limiter, charge);
  t.match(denied, { admitted: false, spent: { resetMs: [0.25] } });
  t.ok(b.resetsAt >= clock.now() + 0.25, 'who waits for the reset waits long enough');
  clock.advance(0.25);
  t.equal(await burst(limiter, charge, 3), 2, 'the next window');
});

t.test('the last to have worked are those still known as proven', async (t) => {
  const clock = testClock();
  const limiter = new MemoryLimiter({ clock: clock.now });
  t.teardown(() => limiter.close());
  const withKey = (key: string): Charge =>
    new Charge([bucket(policy('k', 1, 60), key), bucket(policy('k', 1, 60), 'address', true)], proof(key));
  t.equal(await burst(limiter, withKey('invented'), 1), 1, 'the address has spent its limit');
  for (let i = 0; i < 100_001; i++) {
    limiter.prove(proof(`key-${i}`));
    if (i === 50_000) limiter.prove(proof('key-0'));
  }
  t.equal(await burst(limiter, withKey('key-0'), 1), 1, 'it worked again in between');
  t.equal(await burst(limiter, withKey('key-100000'), 1), 1, 'the newest');
  t.equal(await burst(limiter, withKey('key-1'), 1), 0, 'the oldest is a stranger again');
});
