/** The environment of a gateway for each kind of store. */
import type { Test } from 'tap';
import { type Owner, startTestGateway, type TestGateway, type TestGatewayOptions } from './gateway.ts';
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

/** Starts a store for each of a file's gateways. @returns their environment */
export const EACH_STORE: Readonly<Record<string, (owner: Owner) => Promise<Record<string, string>>>> = {
  memory: async () => ({}),
  Redis: async (owner) => ({ GATEWAY_REDIS_URL: (await startRedis(owner)).url }),
};

/** Runs a test with each store. It gets two gateways that share the store; with memory, the same one twice. */
export async function onEachStore(
  t: Test,
  options: TestGatewayOptions,
  run: (t: Test, one: TestGateway, two: TestGateway) => Promise<void>,
): Promise<void> {
  for (const { name, env, isShared } of await startStores(t))
    await t.test(name, async (t) => {
      const start = () => startTestGateway(t, { ...options, env: { ...options.env, ...env } });
      const one = await start();
      await run(t, one, isShared ? await start() : one);
    });
}
