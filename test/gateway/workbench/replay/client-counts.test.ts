/** Counts the requests of each client exactly, of a bounded number of clients. */
import t from 'tap';
import { ClientCounts } from '#gateway/workbench/replay/client-counts.ts';

t.test('clients over the bound are not counted, which is reported', async (t) => {
  const counts = new ClientCounts(2);
  for (const name of ['b', 'a', 'a', 'b', 'b']) counts.add(name);
  t.notOk(counts.isFull);
  for (const name of ['c', 'a']) counts.add(name);
  t.ok(counts.isFull);
  t.equal(counts.size, 2);
  t.strictSame(counts.most(5), [
    { identity: 'a', count: 3 },
    { identity: 'b', count: 3 },
  ]);
  t.strictSame(counts.most(1), [{ identity: 'a', count: 3 }]);
});
