/** Asks the store's script on a clock of the test. */
import type { Bucket } from '#gateway/limiter/charge.ts';
import { type Adjustment, type Answer, readReply, scriptCall } from '#gateway/limiter/check.ts';
import type { PendingCheck } from '#gateway/limiter/limiter.ts';
import { SPEND } from '#gateway/limiter/script.ts';
import type { Owner } from './gateway.ts';
import { startRedis } from './redis.ts';
import { chargeOf } from './spend.ts';

/** @param leases name of the leases that the requests take; null if they take none */
export function asking(
  buckets: Bucket | readonly Bucket[],
  times = 1,
  leases: string | null = null,
): PendingCheck {
  return {
    charge: chargeOf(...[buckets].flat()),
    listeners: Array.from({ length: times }, () => ({ onSpent() {}, onStoreUnavailable() {} })),
    leases,
  };
}

export async function startScript(owner: Owner) {
  const redis = await startRedis(owner);
  const lua = SPEND.lua.replace("call('TIME')", '{ ARGV[2], ARGV[3] }');
  /** @param estimate of the gateway of the store's clock */
  const ask = async (
    now: number,
    checks: readonly PendingCheck[],
    adjustments: readonly Adjustment[] = [],
    estimate = now,
  ): Promise<readonly Answer[]> => {
    const { keys, args } = scriptCall(estimate, checks, adjustments);
    const time = [String(Math.floor(now / 1000)), String((now % 1000) * 1000)];
    return readReply(await redis.client.eval(lua, keys.length, ...keys, ...args, ...time), checks);
  };
  /** Makes one request. */
  const askOne = async (now: number, buckets: Bucket | readonly Bucket[], estimate = now) => {
    const [answer] = await ask(now, [asking(buckets)], [], estimate);
    if (answer === undefined) throw new Error('it answers');
    return answer.spent;
  };
  return { redis, ask, askOne };
}
