/** Charges requests. */
import type { Bucket } from '#gateway/limiter/charge.ts';
import type { Violation } from '#gateway/limiter/decision.ts';
import type { LimitListener, Spent } from '#gateway/limiter/limiter.ts';
import type { Cover } from '#gateway/policy/match.ts';
import type { Enforcement } from './enforcement.ts';
import type { ChargedTo } from './reading/reading.ts';

/** Receives the answer to a charge. */
export interface Spender extends LimitListener {
  /** Called if this process knows that counters are exhausted. The store was not asked. */
  denyFromMemory(violated: readonly Violation[]): void;
}

/** Charges the request. If a counter is known to be exhausted, the request is denied without asking the store. */
export function spend({ options }: Enforcement, { charge }: ChargedTo, request: Spender): void {
  const { limiter } = options;
  const exhausted = limiter.knownExhausted(charge);
  if (exhausted === null) {
    limiter.spend(charge, request);
    return;
  }
  request.denyFromMemory(
    exhausted.map(({ bucket, used, resetMs }) => {
      const { policy, capacity, limit } = bucket;
      const told = { policy, capacity, limit, remaining: 0, resetMs };
      return { ...told, bucket, used, share: capacity, canNeverPass: false };
    }),
  );
}

/**
 * Counts an admitted request once, as one of a regular or of a newcomer, if a policy with `newcomers` covers it.
 *
 * @param charged null if no policy counts the request
 * @param spent the answer to its charge
 * @returns whether it is a newcomer for one that acts, not in shadow mode
 */
export function countVisitor(
  { metrics }: Enforcement,
  { policies }: Cover,
  charged: ChargedTo | null,
  spent: Spent | null,
): boolean {
  let [isCovered, isNewcomer, isOneThatActs] = [false, false, false];
  for (const { regulars, rollout, bucketId, mode } of policies) {
    if (regulars === null) continue;
    const counts = ({ policy }: Bucket): boolean => policy.bucketId === bucketId;
    const isCharged = charged?.charge.buckets.some(counts) === true;
    // The client may be outside the rollout.
    if (!isCharged && rollout !== null) continue;
    isCovered = true;
    // Some policies are not counted without the store. This process does not know their clients as regulars.
    const at = spent?.buckets.findIndex(counts) ?? -1;
    if (!isCharged || (at >= 0 && spent?.states[at] === null)) continue;
    isNewcomer = true;
    if (mode !== 'shadow') isOneThatActs = true;
  }
  if (isCovered) metrics.visitors[isNewcomer ? 'newcomer' : 'regular']++;
  return isOneThatActs;
}

/** Counts a decision that was made without the store, in the metrics of each policy. */
export function countDegraded(
  { metrics }: Enforcement,
  { charged }: { readonly charged: ChargedTo | null },
): void {
  for (const { policy, counter } of charged?.charge.buckets ?? [])
    if (!counter.forUnproven) metrics.degraded(policy);
}
