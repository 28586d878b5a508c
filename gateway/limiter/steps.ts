/**
 * In a Cluster: a charge whose keys lie in several slots, which no one script can decide.
 *
 * It is decided slot by slot. What denies most often is charged first: an address's counters for unproven credentials,
 * after a look at whether they are proven. Each step asks for no more than the one before admitted, and the first that
 * admits nothing is the last. Then what was charged beyond what is admitted in the end is given back.
 *
 * So no window ever admits more than its limit. In between, others see counters that are fuller than they will stay:
 * a request may be denied for one that is itself denied a moment later.
 */
import { type StoreConnection, storeScript } from '#gateway/store/connection.ts';
import type { Millis } from '#shared/clock.ts';
import { type Charge, Part, proofKey } from './charge.ts';
import { type Answer, type PendingCheck, UnreadableReplyError } from './check.ts';
import type { Held, Level } from './level.ts';

/** KEYS proof markers. Replies for each whether it exists. */
const PROVEN = storeScript(`
local reply = {}
for i = 1, #KEYS do reply[i] = redis.call('PTTL', KEYS[i]) >= 0 and 1 or 0 end
return reply
`);

/** How charges of one kind are asked for. */
export interface StepDialect {
  /** Charges as many of those who ask as there is room for to parts of one slot. */
  ask(
    store: StoreConnection,
    step: readonly StepPart[],
    asking: Pick<PendingCheck, 'listeners' | 'leases'>,
  ): Promise<StepReply>;
  /** Gives back what was charged to parts of one slot. @param leases what its leases are called */
  giveBack(store: StoreConnection, list: readonly GivenUp[], leases: string | null): Promise<unknown>;
  /** What `Spent.resetMs` says. */
  timesOf(parts: readonly Part[], now: Millis): readonly Millis[];
}

/** A part as a step charges it. */
export interface StepPart {
  readonly at: number;
  readonly part: Part;
}

export interface StepReply {
  /** On the store's clock. */
  readonly now: Millis;
  readonly admitted: number;
  /** Part by part. */
  readonly met: readonly Met[];
}

/** How a counter was met. */
export interface Met {
  /** What was used. */
  readonly used: number;
  readonly capacity: number;
  /** Of charges that are not plain. */
  readonly level: Level | null;
  readonly held: Held | null;
}

/** So many requests that were charged and are not admitted in the end. */
export interface GivenUp {
  readonly part: Part;
  readonly times: number;
  /** The place of the first of them among those who asked together. */
  readonly from: number;
  readonly chargedAt: Millis;
}

/** What a step has charged to one counter. */
interface Charged extends StepPart, Met {
  readonly slot: number;
  readonly chargedAt: Millis;
  readonly times: number;
}

/** Whether all keys of a charge may go into one call. */
export function isOneSlot({ parts }: Charge, slotOf: (key: string) => number | null): boolean {
  const [first] = parts;
  if (first === undefined) return true;
  const slot = slotOf(first.key);
  return parts.every(
    ({ key, credential }) =>
      slotOf(key) === slot &&
      (credential === null ||
        (slotOf(credential.key) === slot && slotOf(proofKey(credential.proof)) === slot)),
  );
}

/**
 * @param isGivenUp nobody waits for the answer any more
 * @throws what kept the store from answering all steps; what the others charged is then given back
 */
export async function decideInSteps(
  store: StoreConnection,
  check: PendingCheck,
  dialect: StepDialect,
  isGivenUp: () => boolean,
): Promise<Answer> {
  const { parts } = check.charge;
  const charged: Charged[] = [];
  const { leases } = check;
  const giveBack = (kept: number): void => giveBackIn(store, dialect, charged, kept, leases);
  let admitted = check.listeners.length;
  let now: Millis = 0;
  let proven: readonly (boolean | null)[];
  try {
    const markers = await provenOf(store, parts);
    proven = parts.map(({ credential }) =>
      credential === null ? null : markers.has(proofKey(credential.proof)),
    );
    for (const [slot, step] of stepsOf(parts, proven, store)) {
      if (isGivenUp()) throw new Error('given up');
      const reply = await dialect.ask(store, step, {
        listeners: check.listeners.slice(0, admitted),
        leases,
      });
      now = reply.now;
      for (const [i, stepPart] of step.entries()) {
        const met = reply.met[i];
        if (met === undefined) continue;
        const times = timesCharged(stepPart.part, met, reply.admitted);
        charged.push({ ...stepPart, ...met, slot, chargedAt: now, times });
      }
      admitted = reply.admitted;
      if (admitted === 0) break;
    }
    if (isGivenUp()) throw new Error('given up');
  } catch (error) {
    giveBack(0);
    throw error;
  }
  giveBack(admitted);
  const byPart = parts.map((_, at) => charged.find((one) => one.at === at));
  const levels = check.charge.isPlain ? null : byPart.map((one) => one?.level ?? null);
  return {
    check,
    spent: {
      parts,
      admitted,
      used: byPart.map((one) => one?.used ?? -1),
      resetMs: dialect.timesOf(parts, now),
      shares: null,
      levels,
      chargedAt: levels === null ? null : byPart.map((one) => one?.chargedAt ?? 0),
      leases,
    },
    charged: byPart.map((one) =>
      one === undefined ? -1 : one.used + timesCharged(one.part, one, admitted) * one.part.cost,
    ),
    proven,
    held: levels === null ? null : byPart.map((one) => one?.held ?? null),
    now,
  };
}

/** How many of so many requests a counter takes: all of them, or in shadow as many as there is room for. */
function timesCharged({ cost }: Part, { used, capacity }: Met, admitted: number): number {
  return Math.max(0, Math.min(admitted, Math.floor((capacity - used) / cost)));
}

/** @returns the proof markers that exist, of the credentials that are not known here to be proven */
async function provenOf(store: StoreConnection, parts: readonly Part[]): Promise<ReadonlySet<string>> {
  const markers = new Set(
    parts.flatMap(({ credential }) => (credential === null ? [] : proofKey(credential.proof))),
  );
  const proven = new Set<string>();
  const slots = Map.groupBy(markers, (key) => store.slotOf(key));
  await Promise.all(
    [...slots.values()].map(async (keys) => {
      const reply = await store.run(PROVEN, keys, []);
      if (!Array.isArray(reply) || reply.length !== keys.length)
        throw new UnreadableReplyError('the store sent a reply that cannot be read');
      for (const [i, key] of keys.entries()) if (Number(reply[i]) === 1) proven.add(key);
    }),
  );
  return proven;
}

/** The parts by slot, those about unproven credentials first. A proven credential is not charged to its address. */
function stepsOf(
  parts: readonly Part[],
  proven: readonly (boolean | null)[],
  store: StoreConnection,
): ReadonlyMap<number, readonly StepPart[]> {
  const ordered: StepPart[] = [];
  for (const [at, { counter, identity, cost, limit }] of parts.entries())
    if (proven[at] === false)
      ordered.push({ at, part: new Part(counter, identity, null, cost, identity, limit) });
  for (const [at, part] of parts.entries()) if (part.credential === null) ordered.push({ at, part });
  const steps = new Map<number, StepPart[]>();
  for (const step of ordered) {
    const slot = store.slotOf(step.part.key) ?? 0;
    const same = steps.get(slot);
    if (same === undefined) steps.set(slot, [step]);
    else same.push(step);
  }
  return steps;
}

/** Lowers what was charged to what is admitted. What cannot be given back ends with its window. */
function giveBackIn(
  store: StoreConnection,
  dialect: StepDialect,
  charged: readonly Charged[],
  admitted: number,
  leases: string | null,
): void {
  const bySlot = new Map<number, GivenUp[]>();
  for (const one of charged) {
    const from = timesCharged(one.part, one, admitted);
    const times = one.times - from;
    if (times <= 0) continue;
    const list = bySlot.get(one.slot) ?? [];
    bySlot.set(one.slot, list);
    list.push({ part: one.part, times, from, chargedAt: one.chargedAt });
  }
  for (const list of bySlot.values()) dialect.giveBack(store, list, leases).catch(endsWithItsWindow);
}

function endsWithItsWindow(): void {}
