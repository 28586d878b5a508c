/** The conformance suite of stores, on sentinels and on a Cluster. */
import t from 'tap';
import { conformance, forEachAlgorithm, storeAt } from '#test/gateway/limiter/conformance.ts';
import { startCluster } from '#test/support/redis-cluster.ts';
import { startWatchedRedis } from '#test/support/redis-sentinel.ts';

t.test('the limiter conforms on Redis Cluster, where a charge may span several nodes', async (t) => {
  const cluster = await startCluster(t);
  forEachAlgorithm(t, storeAt(cluster.url));
});

t.test('the limiter conforms on Redis behind sentinels', async (t) => {
  const redis = await startWatchedRedis(t);
  conformance(t, storeAt(redis.url));
});
