/** Prepares a Redis in which histories of clients began a week ago, so that limits of newcomers act at once. */
import { IDENTITY_SECRET } from '#bench/peers/floodgate.ts';
import { Digester } from '#gateway/identity/digest.ts';
import { EVERYONE } from '#gateway/identity/identifier.ts';
import { historySinceKey } from '#gateway/limiter/replicas.ts';
import { DAY_MS } from '#gateway/policy/groups.ts';
import type { RedisServer } from '#test/support/redis.ts';

export async function beginHistories({ client }: RedisServer): Promise<void> {
  const { digest } = new Digester(IDENTITY_SECRET).identify(EVERYONE, '');
  await client.set(historySinceKey(digest), Date.now() - 7 * DAY_MS);
}
