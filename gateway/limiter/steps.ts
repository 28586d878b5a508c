/**
 * Decides a charge in a Cluster whose keys are in several slots, because no single script can.
 *
 * It is decided slot by slot. The buckets that deny most often come first: those of addresses for unproven credentials,
 * after a check whether these are proven. Each step requests at most as many as the previous one admitted, and the
 * first step that admits none is the last. Then charges beyond the final number are given back.
 *
 * So no window ever admits more than its limit. Meanwhile the counters are higher than they will be, so a request may
 * be denied because of one that is itself denied a moment later.
 */

import type { StoreConnection } from '#gateway/store/connection.ts';
import type { Millis } from '#shared/clock.ts';
import { Bucket, Charge } from './charge.ts';
import { type Adjustment, type Answer, readReply, refund, scriptCall } from './check.ts';
import { type Lease, leasesOf } from './leases.ts';
import type { PendingCheck, Spent } from './limiter.ts';
import { SPEND } from './script.ts';

/** Gives back charges that were not admitted in the end. If that fails, they end with the window or the lease. */
interface GiveBack {
  adjust(adjustment: Adjustment): void;
  release(lease: Lease): void;
}

/**
 * @param storeNow an estimate of the store's clock
 * @param isProven whether one of the credentials is proven that free a request from the bucket
 * @throws the fault of a step; the charges of the other steps are then given back
 */
export async function decideInSteps(
  store: StoreConnection,
  storeNow: Millis,
  check: PendingCheck,
  isProven: (bucket: Bucket) => boolean,
  giveBack: GiveBack,
): Promise<Answer> {
  const { charge, listeners, leases } = check;
  const taken: Spent[] = [];
  let admitted = listeners.length;
  try {
    for (const buckets of stepsOf(charge, isProven, store)) {
      const asked = [{ charge: new Charge(buckets), listeners: listeners.slice(0, admitted), leases }];
      const { keys, args } = scriptCall(storeNow, asked);
      for (const { spent } of readReply(await store.run(SPEND, keys, args), asked)) {
        taken.push(spent);
        admitted = spent.admitted;
      }
      if (admitted === 0) break;
    }
  } catch (error) {
    for (const spent of taken) keepOnly(0, spent, giveBack);
    throw error;
  }
  for (const spent of taken) keepOnly(admitted, spent, giveBack);
  const found = new Map(
    taken.flatMap(({ buckets, states }) => buckets.map(({ key }, i) => [key, states[i] ?? null] as const)),
  );
  const states = charge.buckets.map(({ key }) => found.get(key) ?? null);
  return { check, spent: { buckets: charge.buckets, admitted, states, leases, isLocal: false }, proven: [] };
}

/** Gives back what a step took for the requests beyond the first ones. */
function keepOnly(kept: number, spent: Spent, giveBack: GiveBack): void {
  for (let i = kept; i < spent.admitted; i++) for (const lease of leasesOf(spent, i)) giveBack.release(lease);
  for (const [i, bucket] of spent.buckets.entries()) {
    const state = spent.states[i] ?? null;
    if (state === null || bucket.algorithm.isHeld) continue;
    const room = state.roomFor(bucket.cost);
    const beyond = Math.min(spent.admitted, room) - Math.min(kept, room);
    if (beyond > 0) giveBack.adjust(refund(bucket, beyond * bucket.cost, state.state.at));
  }
}

/**
 * Groups the buckets by slot. A proven credential is not charged to its address. Buckets of different values come last,
 * because a value cannot be given back.
 */
function stepsOf(
  { buckets }: Charge,
  isProven: (bucket: Bucket) => boolean,
  store: StoreConnection,
): Iterable<Bucket[]> {
  const ordered = buckets
    .filter((bucket) => !isProven(bucket))
    .sort((a, b) => Math.sign(b.unlessProven.length) - Math.sign(a.unlessProven.length))
    .map(
      ({ counter, identity, cost, limit, value }) => new Bucket(counter, identity, [], cost, limit, value),
    );
  const hasValues = (step: readonly Bucket[]): boolean => step.some(({ value }) => value !== null);
  const steps = [...Map.groupBy(ordered, ({ key }) => store.slotOf(key)).values()];
  return steps.sort((a, b) => Number(hasValues(a)) - Number(hasValues(b)));
}
