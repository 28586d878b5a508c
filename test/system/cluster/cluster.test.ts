/** Three real primaries without replicas. */
import { createHash } from 'node:crypto';
import t from 'tap';
import type { StoreConnection } from '#gateway/store/connection.ts';
import { keySlot } from '#gateway/store/slot-table.ts';
import { startRedis } from '#test/support/redis.ts';
import { type ClusterNode, LOST_SOON, startCluster } from '#test/support/redis-cluster.ts';
import { COUNT, fault, load, storeAt } from '#test/support/store.ts';
import { until } from '#test/support/until.ts';

const cluster = await startCluster(t, ['--cluster-require-full-coverage', 'no']);
t.beforeEach(async () => {
  for (const { client } of cluster.nodes) await client.flushall();
});

/** Returns a key for each node. */
function keysByNode({ nodes } = cluster): readonly [string, string, string] {
  const key = ({ slots: [first, last] }: ClusterNode): string => {
    for (let i = 0; ; i++) if (keySlot(`k${i}`) >= first && keySlot(`k${i}`) <= last) return `k${i}`;
  };
  return [key(nodes[0]), key(nodes[1]), key(nodes[2])];
}

const isAnswered = (store: StoreConnection, key: string): Promise<boolean> =>
  store.run(COUNT, [key], ['g']).then(
    () => true,
    () => false,
  );

t.test('computes the same slot for a key as the server', async (t) => {
  const { nodes } = cluster;
  const digests = Array.from({ length: 200 }, (_, i) =>
    createHash('sha256').update(`${i}`).digest('base64url'),
  );
  const keys = ['', 'a', '{}', '{}a', 'a{b}c', 'a{}b{c}', 'a{{b}}c', '}{a', 'a{b', ...digests];
  for (const key of [...keys, ...digests.map((digest) => `fg:{${digest}}:p:60`)]) {
    t.equal(keySlot(key), await nodes[0].client.cluster('KEYSLOT', key), key);
  }
});

t.test('sends each call to the node of its slot; refuses two slots in one call', async (t) => {
  const changes: boolean[] = [];
  const store = storeAt(t, cluster.url, { onChange: (ready) => changes.push(ready) });
  t.equal(store.ready, false);
  t.equal((await fault(store.run(COUNT, ['k'], ['f']))).kind, 'disconnected', 'not connected yet');
  await store.connect();
  t.equal(store.ready, true);
  const keys = keysByNode();
  for (const [index, key] of keys.entries()) {
    t.equal(store.slotOf(key), keySlot(key));
    t.equal(await store.run(COUNT, [key], ['f']), 1);
    t.equal(
      await cluster.nodes[index]?.client.hget(key, 'f'),
      '1',
      'on a node that the address does not name, too',
    );
  }
  t.match((await fault(store.run(COUNT, [keys[0], keys[1]], ['f']))).message, /CROSSSLOT/);
  store.close();
  t.equal(store.ready, false);
  t.strictSame(changes, [true]);
});

t.test('slots move under load: every call is answered once', async (t) => {
  const store = storeAt(t, cluster.url);
  await store.connect();
  const [a, b, c] = cluster.nodes;
  const [key] = keysByNode();
  const calls = load(store, key);
  await calls.untilMore(100);
  for (const [from, to] of [
    [a, b],
    [b, c],
    [c, a],
  ] as const) {
    await cluster.moveSlot(keySlot(key), from, to, () => calls.untilMore(100));
    await calls.untilMore(100);
  }
  await calls.stop();
  t.strictSame(calls.wrong, [], 'nothing is executed twice');
  t.same([...calls.rejected.values()], [], 'no call is rejected');
  t.equal(await a.client.hlen(key), calls.acknowledged.length);
});

t.test('looks for a missing key where its slot is moving to', async (t) => {
  const store = storeAt(t, cluster.url);
  await store.connect();
  const [a, , c] = cluster.nodes;
  const [key] = keysByNode();
  await cluster.moveSlot(keySlot(key), a, c, async () => {
    t.equal(await store.run(COUNT, [`${key}`], ['f']), 1);
    t.equal(await store.run(COUNT, [`${key}`], ['f']), 2);
  });
  t.equal(await store.run(COUNT, [`${key}`], ['f']), 3);
  t.equal(await c.client.hget(key, 'f'), '3');
  await cluster.moveSlot(keySlot(key), c, a);
});

t.test('a node dies: its slots reject, the others work; restarted, it is used again', async (t) => {
  const store = storeAt(t, cluster.url);
  await store.connect();
  const [a, b, c] = keysByNode();
  const [onA, onB, onC] = [load(store, a), load(store, b), load(store, c)];
  const answered = (): Promise<unknown> => Promise.all([onA, onB, onC].map((calls) => calls.untilMore(100)));
  await answered();
  await cluster.nodes[0].kill();
  await until(() => onA.rejected.size > 100);
  await Promise.all([onB.untilMore(300), onC.untilMore(300)]);
  t.equal(store.ready, true);
  t.match((await fault(store.run(COUNT, [a], ['g']))).message, /nothing listens there|no primary|closed/);
  await cluster.nodes[0].restart();
  await answered();
  await Promise.all([onA, onB, onC].map((calls) => calls.stop()));
  t.same([...onB.rejected, ...onC.rejected], [], 'no call for another node is rejected');
  for (const calls of [onA, onB, onC]) t.strictSame(calls.wrong, [], 'nothing is executed twice');
  t.equal(await cluster.nodes[1].client.hlen(b), onB.acknowledged.length);
  t.equal(await cluster.nodes[2].client.hlen(c), onC.acknowledged.length);
});

t.test('a cluster that needs all its slots reports that it is down, and why', async (t) => {
  const needy = await startCluster(t, LOST_SOON);
  const store = storeAt(t, needy.url);
  await store.connect();
  const [, b] = keysByNode(needy);
  await needy.nodes[0].kill();
  await until(async () => {
    const error = await store.run(COUNT, [b], ['f']).catch((error: Error) => error);
    return error instanceof Error && /CLUSTERDOWN/.test(error.message);
  });
  await needy.nodes[0].restart();
  await needy.untilOk();
  await until(() => isAnswered(store, b));
});

t.test(
  'a node that stops answering: its calls reject, and are not executed elsewhere or again',
  async (t) => {
    const store = storeAt(t, cluster.url);
    await store.connect();
    const [a, b] = keysByNode();
    cluster.nodes[0].freeze();
    const call = store.run(COUNT, [a], ['f']);
    t.equal(await store.run(COUNT, [b], ['f']), 1);
    t.equal((await fault(call)).kind, 'timeout');
    cluster.nodes[0].thaw();
    await until(() => isAnswered(store, a));
    t.ok(Object.values(await cluster.nodes[0].client.hgetall(a)).every((count) => count === '1'));
  },
);

t.test('reports configurations that cannot work', async (t) => {
  const redis = await startRedis(t);
  const single = storeAt(t, `redis+cluster://127.0.0.1:${redis.port}`);
  await t.rejects(single.connect(), { message: /not part of a Cluster: write redis:\/\// });

  const [a, b] = keysByNode();
  const alone = storeAt(t, `redis://127.0.0.1:${cluster.nodes[0].port}`);
  await alone.connect();
  t.equal(await alone.run(COUNT, [a], ['f']), 1);
  t.match(
    (await fault(alone.run(COUNT, [b], ['f']))).message,
    /part of a Cluster: write redis\+cluster:\/\//,
  );
});
