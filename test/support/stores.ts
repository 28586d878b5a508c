/** The environment of a gateway for each kind of store. */
import type { Owner } from './gateway.ts';
import { startRedis } from './redis.ts';

/** Starts a store for each of a file's gateways. @returns their environment */
export const EACH_STORE: Readonly<Record<string, (owner: Owner) => Promise<Record<string, string>>>> = {
  memory: async () => ({}),
  Redis: async (owner) => ({ GATEWAY_REDIS_URL: (await startRedis(owner)).url }),
};
