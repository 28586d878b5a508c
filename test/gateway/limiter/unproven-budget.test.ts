import t from 'tap';
import { closedTo } from '#gateway/limiter/unproven-budget.ts';

t.test('what is closed to whom: to a new one a fifth, to one that comes again two', async (t) => {
  const limits = [1, 2, 3, 5, 6, 10, 100];
  t.strictSame(
    limits.map((limit) => closedTo(0, 0, limit)),
    [0, 1, 1, 1, 2, 2, 20],
  );
  t.strictSame(
    limits.map((limit) => closedTo(1, 2, limit)),
    [0, 1, 2, 2, 4, 4, 40],
  );
});

t.test('nothing is closed to one that made more than half of what its address used', async (t) => {
  t.equal(closedTo(7, 7, 10), 0);
  t.equal(closedTo(4, 7, 10), 0);
  t.equal(closedTo(4, 8, 10), 4);
  t.equal(closedTo(8, 0, 10), 0, 'what it used while it counted as proven is not in there');
});
