/** The environment of a gateway for each kind of store. */
import type { Owner } from './gateway.ts';
import { startRedis } from './redis.ts';
import { startCluster } from './redis-cluster.ts';

interface TestStore {
  readonly name: string;
  readonly env: Readonly<Record<string, string>>;
  /** Two gateways can share it. */
  readonly isShared: boolean;
}

export async function startStores(owner: Owner): Promise<readonly TestStore[]> {
  const redis = await startRedis(owner);
  const cluster = await startCluster(owner);
  return [
    { name: 'memory', env: {}, isShared: false },
    { name: 'Redis', env: { GATEWAY_REDIS_URL: redis.url }, isShared: true },
    { name: 'Cluster', env: { GATEWAY_REDIS_URL: cluster.url }, isShared: true },
  ];
}
