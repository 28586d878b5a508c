/** What is owed to the store, and what a late answer takes off it. */
import t from 'tap';
import { Owed } from '#gateway/limiter/owed.ts';
import { part, policy } from '#test/support/spend.ts';

const MINUTE_MS = 60_000;
const one = part(policy('p', 100, 60));

t.test('a late answer pays what is owed in its window; the rest is told', async (t) => {
  const owed = new Owed();
  owed.add(one, MINUTE_MS, 5);
  t.equal(owed.paid(one, MINUTE_MS + 1, 3), 0, 'by another clock, and the same window');
  t.equal(owed.paid(one, MINUTE_MS, 4), 2, 'two were left');
  t.equal(owed.size, 0);
  t.equal(owed.paid(one, MINUTE_MS, 1), 1);
});

t.test('an answer about the window before pays nothing of this one', async (t) => {
  const owed = new Owed();
  owed.add(one, 2 * MINUTE_MS, 5);
  t.equal(owed.paid(one, MINUTE_MS, 3), 3);
  t.match(owed.take(10, MINUTE_MS), [{ key: one.key, times: 5 }]);
});
