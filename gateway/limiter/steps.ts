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

import type { Identity } from '#gateway/identity/digest.ts';
import { inCalls, type StoreConnection } from '#gateway/store/connection.ts';
import type { Millis } from '#shared/clock.ts';
import type { BucketState } from './bucket-state.ts';
import { Bucket, Charge, proofKey } from './charge.ts';
import {
  type Adjustment,
  type Answer,
  type PendingCheck,
  readReply,
  refund,
  scriptCall,
  UnreadableReplyError,
} from './check.ts';
import { type Lease, memberOf } from './leases.ts';
import { ARE_PROVEN } from './proof-scripts.ts';
import { SPEND } from './script.ts';

/** Gives back charges that were not admitted in the end. If that fails, they end with the window or the lease. */
export interface GiveBack {
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
 * @throws the error of a step; the charges of the other steps are then given back
 */
export async function decideInSteps(
  store: StoreConnection,
  storeNow: Millis,
  check: PendingCheck,
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
    const proven = await provenOf(store, charge);
    for (const step of stepsOf(charge, proven, store)) {
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
    return { check, spent, proven };
  } catch (error) {
    keepOnly(0);
    throw error;
  }
}

/** Returns which credentials of a charge are proven, among those that are not known to be. */
async function provenOf(store: StoreConnection, { buckets }: Charge): Promise<readonly Identity[]> {
  const asked = new Map(
    buckets.flatMap(({ unlessProven }) => unlessProven.map((one) => [proofKey(one), one] as const)),
  );
  const proven = inCalls(store, asked.keys(), (key) => key).map(async (keys) => {
    const reply = await store.run(ARE_PROVEN, keys, []);
    if (!Array.isArray(reply) || reply.length !== keys.length)
      throw new UnreadableReplyError('the store sent a reply that cannot be read');
    return keys.flatMap((key, i) => {
      const credential = asked.get(key);
      return credential === undefined || reply[i] !== 1 ? [] : [credential];
    });
  });
  return (await Promise.all(proven)).flat();
}

/** Whether something of the step cannot be given back. */
function hasValues(step: readonly Step[]): boolean {
  return step.some(({ bucket }) => bucket.value !== null);
}

/**
 * Groups the buckets by slot. A proven credential is not charged to its address. Buckets of different values come last,
 * because a value cannot be given back.
 */
function stepsOf({ buckets }: Charge, proven: readonly Identity[], store: StoreConnection): Iterable<Step[]> {
  const ordered: Step[] = [];
  const isProven = (identity: Identity): boolean => proven.some(({ digest }) => digest === identity.digest);
  for (const [place, { counter, identity, unlessProven, cost, limit, value }] of buckets.entries())
    if (unlessProven.length > 0 && !unlessProven.some(isProven))
      ordered.push({ place, bucket: new Bucket(counter, identity, [], cost, limit, value) });
  for (const [place, bucket] of buckets.entries())
    if (bucket.unlessProven.length === 0) ordered.push({ place, bucket });
  const steps = [...Map.groupBy(ordered, ({ bucket }) => store.slotOf(bucket.key)).values()];
  return steps.sort((a, b) => Number(hasValues(a)) - Number(hasValues(b)));
}
