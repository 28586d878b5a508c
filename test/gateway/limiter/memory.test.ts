/** Tests features of the memory store only: its bound, and a clock with fractions. */
import t from 'tap';
import { KnownCounters } from '#gateway/limiter/known-counters.ts';
import { testClock } from '#test/support/clock.ts';
import { burst, chargeOf, memoryLimiter, part, policy, spend, unproven } from '#test/support/spend.ts';

t.test('writes nothing if the address has no budget left', async (t) => {
  const known = new KnownCounters({ countersMax: 4096 });
  const limiter = memoryLimiter({ clock: testClock().now, known });
  const p = policy('keys', 5, 60);
  let admitted = 0;
  for (let i = 0; i < 1000; i++)
    admitted += await burst(limiter, chargeOf(...unproven(p, `key-${i}`, 'address')), 1);
  t.equal(admitted, 5);
  t.equal(known.size, 6, 'five keys and one address');
});

t.test('window edges with fractions of milliseconds: each window has its exact length', async (t) => {
  const clock = testClock(Date.UTC(2026, 0, 1) - 0.25);
  const limiter = memoryLimiter({ clock: clock.now });
  const charge = chargeOf(part(policy('p', 2, 60)));
  t.equal(await burst(limiter, charge, 3), 2, 'a quarter of a millisecond before the edge');
  clock.advance(0.25);
  t.equal(await burst(limiter, charge, 3), 2, 'at the edge');
  clock.advance(59_999.75);
  const denied = await spend(limiter, charge);
  t.match(denied, { admitted: false });
  t.equal(denied.kind === 'spent' && denied.spent.states[0]?.resetMs(0), 1, 'rounded up to milliseconds');
  clock.advance(0.25);
  t.equal(await burst(limiter, charge, 3), 2);
});
