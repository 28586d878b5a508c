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
import type { BucketState } from './bucket-state.ts';
import { Bucket, Charge } from './charge.ts';
import { type Adjustment, type Answer, readReply, refund, scriptCall } from './check.ts';
import { type Lease, memberOf } from './leases.ts';
import type { PendingCheck } from './limiter.ts';
import { SPEND } from './script.ts';

/** Gives back charges that were not admitted in the end. If that fails, they end with the window or the lease. */
interface GiveBack {
  adjust(adjustment: Adjustment): void;
  release(lease: Lease): void;
}

/** A bucket, and its index in the charge. */
interface Step {
  readonly place: number;
  readonly bucket: Bucket;
}

interface Charged extends Step {
  readonly state: BucketState;
  readonly times: number;
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
  const charged: Charged[] = [];
  const keepOnly = (admitted: number): void => {
    for (const { bucket, state, times } of charged) {
      const { cost, key, algorithm } = bucket;
      const kept = Math.min(admitted, state.roomFor(cost));
      if (algorithm.isHeld)
        for (let i = kept; i < times; i++) giveBack.release({ key, member: memberOf(leases ?? '', i) });
      else if (times > kept) giveBack.adjust(refund(bucket, (times - kept) * cost, state.state.at));
    }
  };
  let admitted = listeners.length;
  try {
    for (const step of stepsOf(charge, isProven, store)) {
      const asked = [
        {
          charge: new Charge(step.map(({ bucket }) => bucket)),
          listeners: listeners.slice(0, admitted),
          leases,
        },
      ];
      const { keys, args } = scriptCall(storeNow, asked);
      const spent = readReply(await store.run(SPEND, keys, args), asked)[0]?.spent;
      admitted = spent?.admitted ?? 0;
      for (const [i, { place, bucket }] of step.entries()) {
        const state = spent?.states[i] ?? null;
        if (state !== null)
          charged.push({ place, bucket, state, times: Math.min(admitted, state.roomFor(bucket.cost)) });
      }
      if (admitted === 0) break;
    }
    keepOnly(admitted);
    const states = charge.buckets.map(
      (_, place) => charged.find((one) => one.place === place)?.state ?? null,
    );
    const spent = { buckets: charge.buckets, admitted, states, leases, isLocal: false };
    return { check, spent, proven: [] };
  } catch (error) {
    keepOnly(0);
    throw error;
  }
}

/** Whether something of the step cannot be given back. */
function hasValues(step: readonly Step[]): boolean {
  return step.some(({ bucket }) => bucket.value !== null);
}

/**
 * Groups the buckets by slot. A proven credential is not charged to its address. Buckets of different values come last,
 * because a value cannot be given back.
 */
function stepsOf(
  { buckets }: Charge,
  isProven: (bucket: Bucket) => boolean,
  store: StoreConnection,
): Iterable<Step[]> {
  const places = buckets.entries().toArray();
  const ordered: Step[] = places
    .filter(([, bucket]) => !isProven(bucket))
    .sort(([, a], [, b]) => Math.sign(b.unlessProven.length) - Math.sign(a.unlessProven.length))
    .map(([place, { counter, identity, cost, limit, value }]) => ({
      place,
      bucket: new Bucket(counter, identity, [], cost, limit, value),
    }));
  const steps = [...Map.groupBy(ordered, ({ bucket }) => store.slotOf(bucket.key)).values()];
  return steps.sort((a, b) => Number(hasValues(a)) - Number(hasValues(b)));
}
