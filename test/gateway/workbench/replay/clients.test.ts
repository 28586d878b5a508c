/** Requests of each client are counted exactly, and spans of time are bounded. */
import t from 'tap';
import { ClientCounts } from '#gateway/workbench/replay/clients.ts';
import { Timeline } from '#gateway/workbench/replay/timeline.ts';

t.test('clients: exact, however many there are', async (t) => {
  const counts = new ClientCounts({ left: 100_000 });
  for (let i = 0; i < 60_000; i++) counts.add(`client ${i}`);
  for (let i = 0; i < 9; i++) counts.add('client 30000');
  for (const name of ['client 8', 'client 7', 'client 8']) counts.add(name);
  t.equal(counts.size, 60_000);
  t.notOk(counts.isFull);
  t.strictSame(counts.most(3), [
    { identity: 'client 30000', count: 10 },
    { identity: 'client 8', count: 3 },
    { identity: 'client 7', count: 2 },
  ]);
});

t.test('clients: the counts of a run share their room, and say when it is used up', async (t) => {
  const room = { left: 3 };
  const [some, others] = [new ClientCounts(room), new ClientCounts(room)];
  for (const name of ['a', 'b', 'a']) some.add(name);
  for (const name of ['a', 'b', 'a']) others.add(name);
  t.strictSame([some.size, some.isFull], [2, false]);
  t.strictSame([others.size, others.isFull], [1, true]);
  t.strictSame(others.most(5), [{ identity: 'a', count: 2 }]);
});

t.test('timeline: spans grow, and nothing is lost', async (t) => {
  const timeline = new Timeline();
  const begin = Date.UTC(2026, 10, 22, 8, 0, 7);
  t.strictSame(timeline.spans, []);
  for (let hour = 0; hour < 100; hour++) {
    for (let i = 0; i < 30; i++) timeline.add(begin + hour * 3_600_000 + i * 1000, i % 3 === 0);
  }
  const { spans, widthMs } = timeline;
  t.ok(spans.length <= 240 && spans.length > 60, `${spans.length} of ${widthMs}`);
  t.equal(
    spans.reduce((sum, { denied }) => sum + denied, 0),
    1000,
  );
  t.equal(
    spans.reduce((sum, { allowed }) => sum + allowed, 0),
    2000,
  );
  t.ok(spans.every(({ at }) => at % widthMs === 0));
});
