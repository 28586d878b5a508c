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
  /** Deletes all data. */
  empty(): Promise<unknown>;
}

/** The stores that the tests of a file use in turn, because a Cluster takes a while to start. */
const storesOf = new WeakMap<object, Promise<readonly TestStore[]>>();

async function startStores(owner: Owner): Promise<readonly TestStore[]> {
  const redis = await startRedis(owner);
  const cluster = await startCluster(owner);
  return [
    { name: 'memory', env: {}, isShared: false, empty: async () => undefined },
    {
      name: 'Redis',
      env: { GATEWAY_REDIS_URL: redis.url },
      isShared: true,
      empty: () => redis.client.flushall(),
    },
    {
      name: 'Cluster',
      env: { GATEWAY_REDIS_URL: cluster.url },
      isShared: true,
      empty: () => Promise.all(cluster.nodes.map(({ client }) => client.flushall())),
    },
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
  /** The options of both gateways, or of each by its number and the name of the store. */
  options: TestGatewayOptions | ((number: 0 | 1, store: string) => TestGatewayOptions),
  run: (t: Test, one: TestGateway, two: TestGateway) => Promise<void>,
): Promise<void> {
  const file = t.parent as unknown as Owner;
  const stores = storesOf.get(file) ?? startStores(file);
  storesOf.set(file, stores);
  for (const { name, env, isShared, empty } of await stores)
    await t.test(name, async (t) => {
      await empty();
      const start = (number: 0 | 1) => {
        const own = typeof options === 'function' ? options(number, name) : options;
        return startTestGateway(t, { ...own, env: { ...own.env, ...env } });
      };
      const one = await start(0);
      await run(t, one, isShared ? await start(1) : one);
    });
}
