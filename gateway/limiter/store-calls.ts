/**
 * Distributes charges over calls of the store. A single server accepts any keys in one call. In a Cluster all keys of a
 * call must have the same slot; a charge with several slots is decided in steps (steps.ts).
 */
import { inCalls, KEYS_PER_SCRIPT_MAX, type StoreConnection } from '#gateway/store/connection.ts';
import type { Millis } from '#shared/clock.ts';
import { type Charge, proofKey } from './charge.ts';
import { type Adjustment, type Answer, keysOf, type PendingCheck, readReply, scriptCall } from './check.ts';
import { SPEND } from './script.ts';
import { decideInSteps, type GiveBack } from './steps.ts';

type SlotOf = StoreConnection['slotOf'];

/** Checks of one call. */
export interface StoreCall {
  readonly checks: readonly PendingCheck[];
  readonly isInSteps: boolean;
}

export function callsFor(checks: Iterable<PendingCheck>, slotOf: SlotOf): StoreCall[] {
  const calls: StoreCall[] = [];
  const bySlot = new Map<number | null, PendingCheck[]>();
  for (const check of checks) {
    const [first] = check.charge.buckets;
    const slot = first === undefined ? null : slotOf(first.key);
    if (slot !== null && !isOneSlot(check.charge, slotOf)) {
      calls.push({ checks: [check], isInSteps: true });
      continue;
    }
    const same = bySlot.get(slot);
    if (same === undefined) bySlot.set(slot, [check]);
    else same.push(check);
  }
  for (const same of bySlot.values()) {
    let some: PendingCheck[] = [];
    let keys = 0;
    for (const check of same) {
      const need = keysOf(check.charge);
      if (keys > 0 && keys + need > KEYS_PER_SCRIPT_MAX) {
        calls.push({ checks: some, isInSteps: false });
        some = [];
        keys = 0;
      }
      keys += need;
      some.push(check);
    }
    calls.push({ checks: some, isInSteps: false });
  }
  return calls;
}

/** Whether all keys of a charge can be in one call. */
function isOneSlot({ buckets }: Charge, slotOf: SlotOf): boolean {
  const keys = buckets.flatMap(({ key, unlessProven }) => [key, ...unlessProven.map(proofKey)]);
  return new Set(keys.map(slotOf)).size <= 1;
}

/**
 * @param storeNow an estimate of the store's clock
 * @throws StoreFault, or UnreadableReplyError
 */
export async function decide(
  store: StoreConnection,
  storeNow: Millis,
  { checks, isInSteps }: StoreCall,
  giveBack: GiveBack,
): Promise<readonly Answer[]> {
  const [check] = checks;
  if (isInSteps && check !== undefined) return [await decideInSteps(store, storeNow, check, giveBack)];
  const { keys, args } = scriptCall(storeNow, checks);
  return readReply(await store.run(SPEND, keys, args), checks);
}

/** Adjustments of one call. */
export interface AdjustmentCall {
  readonly some: readonly Adjustment[];
  readonly made: Promise<unknown>;
}

/** Changes counters, with one call for each slot. */
export function adjust(
  store: StoreConnection,
  storeNow: Millis,
  adjustments: readonly Adjustment[],
): AdjustmentCall[] {
  return inCalls(store, adjustments, ({ bucket }) => bucket.key).map((some) => {
    const { keys, args } = scriptCall(storeNow, [], some);
    return { some, made: store.run(SPEND, keys, args) };
  });
}
