/** Prepares a Redis in which histories of clients began a week ago, so that limits of newcomers act at once. */
import { IDENTITY_SECRET } from '#bench/peers/floodgate.ts';
import { Digester } from '#gateway/identity/digest.ts';
import { EVERYONE } from '#gateway/identity/identifier.ts';
import { historyKey } from '#gateway/limiter/history.ts';
import { historySinceKey } from '#gateway/limiter/replicas.ts';
import { DAY_MS, HISTORY_DAYS } from '#gateway/policy/groups.ts';
import type { RedisServer } from '#test/support/redis.ts';

/** @param regulars addresses of clients that were here yesterday */
export async function beginHistories({ client }: RedisServer, regulars: readonly string[]): Promise<void> {
  const digester = new Digester(IDENTITY_SECRET);
  await client.set(historySinceKey(digester.identify(EVERYONE, '').digest), Date.now() - 7 * DAY_MS);
  const yesterday = (Math.floor(Date.now() / DAY_MS) - 1) * 2 ** HISTORY_DAYS + 1;
  const byAddress = { name: 'ip', kind: 'address', ipv6Prefix: 64 } as const;
  for (const address of regulars)
    await client.set(historyKey(digester.identify(byAddress, address)), yesterday);
}
