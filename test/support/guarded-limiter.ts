/** Builds the limiter over a real store, as the gateway does. */
import type { GuardedLimiterOptions } from '#gateway/limiter/outage.ts';
import { GuardedLimiter } from '#gateway/limiter/outage.ts';
import type { Millis } from '#shared/clock.ts';
import type { Owner } from './gateway.ts';
import { chargeOf, part, policy, spend } from './spend.ts';
import { accessTo } from './store.ts';
import { STORE_BUDGET_MS } from './store-budget.ts';
import { until } from './until.ts';
import { LONG_WINDOW_SECONDS } from './window.ts';

/** Gives each gateway of this process a name of its own. */
let replicas = 0;

/** The clock of a gateway process. */
export const processClock = (): Millis => performance.timeOrigin + performance.now();

/**
 * Returns a connected limiter that is closed with the test. By default it waits for the store as long as a busy machine
 * may take.
 */
export async function startLimiter(
  owner: Owner,
  url: string,
  options: Partial<GuardedLimiterOptions> = {},
): Promise<GuardedLimiter> {
  const limiter = new GuardedLimiter({
    store: accessTo(url),
    clock: processClock,
    log: { warn: () => {}, info: () => {} },
    budgetMs: STORE_BUDGET_MS,
    rememberedMax: 16_384,
    replica: `limiter:${process.pid}:${++replicas}`,
    salt: 'salt',
    onSalt: () => {},
    ...options,
  });
  owner.teardown(() => limiter.close());
  await limiter.start();
  return limiter;
}

/** Waits until the limiter has noticed that its store does not answer. */
export async function untilAway(limiter: GuardedLimiter): Promise<void> {
  await until(async () => {
    await spend(limiter, chargeOf(part(policy('probe', 1e6, LONG_WINDOW_SECONDS))));
    return !limiter.stats().available;
  }, 'the loss of the store is noticed');
}
