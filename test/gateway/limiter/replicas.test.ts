/** Tests how many replicas a process counts on its store. */
import t from 'tap';
import { Replicas } from '#gateway/limiter/replicas.ts';

t.test('more replicas count at once, fewer only after fifteen equal heartbeats', async (t) => {
  const heard = new Replicas(() => 0, 'one');
  heard.hear(3, 2);
  t.match(heard, { count: 3, rank: 2 });
  for (let i = 0; i < 14; i++) heard.hear(2, 1);
  t.match(heard, { count: 3, rank: 2 });
  heard.hear(3, 1);
  for (let i = 0; i < 14; i++) heard.hear(2, 1);
  t.match(heard, { count: 3, rank: 1 }, 'the count of equal heartbeats starts again');
  heard.hear(2, 1);
  t.match(heard, { count: 2, rank: 1 });
});

t.test('a store that lists no replicas, or not this one, leaves it the whole limit', async (t) => {
  const heard = new Replicas(() => 0, 'one');
  for (let i = 0; i < 15; i++) heard.hear(0, 3);
  t.match(heard, { count: 1, rank: 0 });
});
