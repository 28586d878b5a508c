/** How many replicas a process believes to share its store, and when it takes a clock to have been set. */
import t from 'tap';
import { HeardReplicas } from '#gateway/limiter/heard-replicas.ts';
import type { Heartbeat } from '#gateway/limiter/replicas.ts';

function heartbeat(told: Partial<Heartbeat>): Heartbeat {
  return { replicas: 1, rank: 0, salt: '', aheadMs: 0, tookMs: 1, ...told };
}

t.test(
  'more replicas are believed at once, fewer when fifteen heartbeats in a row have said so',
  async (t) => {
    const heard = new HeardReplicas();
    heard.hear(heartbeat({ replicas: 3, rank: 2 }));
    t.match(heard, { count: 3, rank: 2 });
    for (let i = 0; i < 14; i++) heard.hear(heartbeat({ replicas: 2, rank: 1 }));
    t.match(heard, { count: 3, rank: 2 });
    heard.hear(heartbeat({ replicas: 3, rank: 1 }));
    for (let i = 0; i < 14; i++) heard.hear(heartbeat({ replicas: 2, rank: 1 }));
    t.match(heard, { count: 3, rank: 1 }, 'begins again');
    heard.hear(heartbeat({ replicas: 2, rank: 1 }));
    t.match(heard, { count: 2, rank: 1 });
  },
);

t.test('a store that knows of none, or not of this one, leaves it a whole share', async (t) => {
  const heard = new HeardReplicas();
  for (let i = 0; i < 15; i++) heard.hear(heartbeat({ replicas: 0, rank: 3 }));
  t.match(heard, { count: 1, rank: 0 });
});

t.test('a clock has jumped when it is off by more than a second', async (t) => {
  const heard = new HeardReplicas();
  t.equal(heard.storeAheadMs, 0);
  t.equal(heard.hear(heartbeat({ aheadMs: 90_000 })), false, 'the first word is no jump');
  t.equal(heard.hear(heartbeat({ aheadMs: 91_000 })), false, 'drift');
  t.equal(heard.hear(heartbeat({ aheadMs: 92_001 })), true);
  t.equal(heard.hear(heartbeat({ aheadMs: 91_000 })), true, 'back');
  t.equal(heard.storeAheadMs, 91_000);
});

t.test('what took longer than a second says nothing of the clock', async (t) => {
  const heard = new HeardReplicas();
  heard.hear(heartbeat({ aheadMs: 40, tookMs: 5000 }));
  t.equal(heard.storeAheadMs, 40, 'better than nothing');
  t.equal(heard.hear(heartbeat({ replicas: 2, aheadMs: 9000, tookMs: 1001 })), false);
  t.match(heard, { storeAheadMs: 40, count: 2 });
});
