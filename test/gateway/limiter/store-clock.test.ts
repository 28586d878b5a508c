/** Tests the estimate of the store's clock, its error bounds, and how a changed clock is noticed. */
import t from 'tap';
import { StoreClock } from '#gateway/limiter/store-clock.ts';
import { testClock } from '#test/support/clock.ts';

const NOW = Date.UTC(2026, 0, 1);

function started(): StoreClock {
  return new StoreClock(testClock(NOW).now);
}

t.test('without a store the local clock is exact to the millisecond', async (t) => {
  const clock = new StoreClock(() => NOW + 0.25);
  t.strictSame([clock.earliest(), clock.now(), clock.latest()], [NOW, NOW, NOW + 1]);
});

t.test('a heartbeat gives the estimate, and every answer its bounds', async (t) => {
  const clock = started();
  clock.noteHeartbeat(NOW + 40, NOW - 4, NOW);
  t.strictSame([clock.earliest(), clock.now(), clock.latest()], [NOW + 40, NOW + 42, NOW + 45]);
  // Another node's clock is behind, and its answer was slow.
  clock.note(NOW + 10, NOW - 20, NOW);
  t.strictSame([clock.earliest(), clock.now(), clock.latest()], [NOW + 10, NOW + 42, NOW + 45]);
  clock.noteHeartbeat(NOW + 40, NOW - 4, NOW);
  t.equal(clock.earliest(), NOW + 10, 'the earlier bound still holds');
  clock.noteHeartbeat(NOW + 40, NOW - 4, NOW);
  t.equal(clock.earliest(), NOW + 40, 'two heartbeats later the bound is dropped');
});

t.test('a difference of more than a second counts as a clock jump', async (t) => {
  const clock = started();
  const heartbeat = (aheadMs: number) => clock.noteHeartbeat(NOW + aheadMs, NOW, NOW);
  t.strictSame(heartbeat(90_000), { kind: 'first', aheadMs: 90_000 }, 'the first heartbeat is no jump');
  t.equal(heartbeat(91_000).kind, 'none', 'a second of drift is no jump');
  t.equal(heartbeat(92_001).kind, 'jump');
  t.equal(clock.earliest(), NOW + 92_001, 'bounds from before the jump are dropped');
  t.equal(heartbeat(91_000).kind, 'jump', 'a jump back');
  t.equal(clock.now(), NOW + 91_000);
});

t.test('answers slower than a second do not change the estimate', async (t) => {
  const clock = started();
  clock.noteHeartbeat(NOW, NOW - 5000, NOW);
  t.equal(clock.now(), NOW + 2500, 'the estimate of a slow answer is used if there is no other');
  t.equal(clock.noteHeartbeat(NOW + 9000, NOW - 1001, NOW).kind, 'none');
  t.equal(clock.now(), NOW + 2500);
});
