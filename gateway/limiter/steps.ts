/**
 * In a Cluster: a charge whose keys lie in several slots, which no one script can decide.
 *
 * It is decided slot by slot. What denies most often is charged first: an address's counters for credentials that have
 * not worked yet, after a look at whether they have. Each step asks for no more than the one before admitted, and the
 * first that admits nothing is the last. Then what was charged beyond what is admitted in the end is given back.
 *
 * So no window ever admits more than its limit. In between, others see counters that are fuller than they will stay:
 * a request may be denied for one that is itself denied a moment later.
 */
import { type StoreConnection, storeScript } from '#gateway/store/connection.ts';
import type { Millis } from '#shared/clock.ts';
import { Charge, Part, proofKey, reservedOf } from './charge.ts';
import { type Answer, type PendingCheck, readReply, UnreadableReplyError } from './check.ts';
import { HISTORY_MS, PROVEN_MS, untilWindowEnd } from './limiter.ts';
import { SPEND } from './spend-script.ts';

/** KEYS proof markers and credentials' counters; ARGV for each its window in ms, 0 for a marker. Replies for each the marker's PTTL, or whether the counter is used. */
const LOOK = storeScript(`
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local reply = {}
for i = 1, #KEYS do
  local window = tonumber(ARGV[i])
  if window == 0 then reply[i] = redis.call('PTTL', KEYS[i])
  else
    local value = tonumber(redis.call('GET', KEYS[i]) or 0)
    local base = (math.floor(now / window) % 1048576) * 4294967296
    reply[i] = value > base and value < base + 4294967296 and 1 or 0
  end
end
return reply
`);

/** KEYS counters; ARGV for each the number of its window (modulo 2^20) and by how much it is lowered while that window lasts. */
const GIVE_BACK = storeScript(`
for i = 1, #KEYS do
  local value = tonumber(redis.call('GET', KEYS[i]) or 0)
  local base, excess = tonumber(ARGV[i * 2 - 1]) * 4294967296, tonumber(ARGV[i * 2])
  if value == base + excess then redis.call('DEL', KEYS[i])
  elseif value > base + excess and value < base + 4294967296 then redis.call('DECRBY', KEYS[i], excess) end
end
return #KEYS
`);

/** What is known of a part that has been charged, or was not. */
interface Outcome {
  used: number;
  charged: number;
  isProven: boolean | null;
}

/** A part as a step charges it. */
interface StepPart {
  readonly at: number;
  readonly part: Part;
  /** It is about a credential that nothing is known of: what is reserved is closed to it. */
  readonly isStranger: boolean;
}

/** What a step has charged to one counter. */
interface Charged extends StepPart {
  readonly slot: number;
  readonly times: number;
  readonly used: number;
  readonly window: number;
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
  isGivenUp: () => boolean,
): Promise<Answer> {
  const { parts } = check.charge;
  const outcomes: Outcome[] = parts.map(() => ({ used: -1, charged: -1, isProven: null }));
  const charged: Charged[] = [];
  let admitted = check.listeners.length;
  let now: Millis = 0;
  try {
    const steps = stepsOf(parts, await knownOf(store, parts, outcomes), store);
    for (const [slot, step] of steps) {
      if (isGivenUp()) throw new Error('given up');
      const parts = step.map(({ part }) => part);
      const asked = { charge: new Charge(parts), listeners: check.listeners.slice(0, admitted) };
      const reply = readReply(await store.run(SPEND, ...stepCall(step, admitted)), [asked]);
      const [answer] = reply.answers;
      if (answer === undefined) throw new UnreadableReplyError('the store sent a reply of another length');
      now = reply.now;
      for (const [i, stepPart] of step.entries()) {
        const { policy, limit } = stepPart.part;
        const used = answer.spent.used[i] ?? 0;
        const outcome = outcomes[stepPart.at];
        if (outcome !== undefined) outcome.used = isClosed(stepPart, used) ? limit : used;
        const times = (answer.charged[i] ?? 0) - used;
        charged.push({
          ...stepPart,
          slot,
          times,
          used,
          window: Math.floor(now / policy.windowMs) % 1_048_576,
        });
      }
      admitted = answer.spent.admitted;
      if (admitted === 0) break;
    }
  } catch (error) {
    giveBack(store, charged, 0);
    throw error;
  }
  if (isGivenUp()) {
    giveBack(store, charged, 0);
    throw new Error('given up');
  }
  giveBack(store, charged, admitted);
  for (const { at, part, used } of charged) {
    const outcome = outcomes[at];
    if (outcome !== undefined) outcome.charged = Math.max(used, Math.min(used + admitted, part.limit));
  }
  return {
    check,
    spent: {
      parts,
      admitted,
      used: outcomes.map(({ used }) => used),
      resetMs: parts.map(({ policy }) => untilWindowEnd(now, policy.windowMs)),
      shares: null,
    },
    charged: outcomes.map(({ charged }) => charged),
    proven: outcomes.map(({ isProven }) => isProven),
  };
}

/** What the store says of credentials that are not known to have worked, by key. */
interface Known {
  /** For how long each marker has to live still; negative: there is none. */
  readonly markers: ReadonlyMap<string, Millis>;
  /** Credentials' own counters that are used in this window. */
  readonly used: ReadonlySet<string>;
}

/** Looks at the credentials that are not known to have worked, and notes in `outcomes` which have. */
async function knownOf(
  store: StoreConnection,
  parts: readonly Part[],
  outcomes: readonly Outcome[],
): Promise<Known> {
  /** Window in ms, 0 for a marker, by key. */
  const asked = new Map<string, Millis>();
  for (const { credential } of parts) {
    if (credential === null) continue;
    asked.set(proofKey(credential.proof), 0);
    asked.set(credential.key, credential.policy.windowMs);
  }
  const markers = new Map<string, Millis>();
  const used = new Set<string>();
  const slots = Map.groupBy(asked.keys(), (key) => store.slotOf(key));
  await Promise.all(
    [...slots.values()].map(async (keys) => {
      const windows = keys.map((key) => String(asked.get(key) ?? 0));
      const reply = await store.run(LOOK, keys, windows);
      if (!Array.isArray(reply) || reply.length !== keys.length)
        throw new UnreadableReplyError('the store sent a reply that cannot be read');
      for (const [i, key] of keys.entries()) {
        if (asked.get(key) === 0) markers.set(key, Number(reply[i]));
        else if (Number(reply[i]) === 1) used.add(key);
      }
    }),
  );
  const known = { markers, used };
  for (const [i, { credential }] of parts.entries()) {
    const outcome = outcomes[i];
    if (credential !== null && outcome !== undefined) outcome.isProven = isProven(known, credential);
  }
  return known;
}

function isProven({ markers }: Known, credential: Part): boolean {
  return (markers.get(proofKey(credential.proof)) ?? -1) > HISTORY_MS - PROVEN_MS;
}

/** The parts by slot, those about unproven credentials first. A proven credential is not charged to its address. */
function stepsOf(
  parts: readonly Part[],
  known: Known,
  store: StoreConnection,
): ReadonlyMap<number, readonly StepPart[]> {
  const ordered: StepPart[] = [];
  for (const [at, part] of parts.entries()) {
    const { credential } = part;
    if (credential === null) continue;
    if (isProven(known, credential)) continue;
    const hasWorked = (known.markers.get(proofKey(credential.proof)) ?? -1) >= 0;
    const isStranger = !hasWorked && !known.used.has(credential.key);
    ordered.push({
      at,
      part: new Part(part.counter, part.identity, null, part.identity, part.limit),
      isStranger,
    });
  }
  for (const [at, part] of parts.entries())
    if (part.credential === null) ordered.push({ at, part, isStranger: false });
  const steps = new Map<number, StepPart[]>();
  for (const step of ordered) {
    const slot = store.slotOf(step.part.key) ?? 0;
    const same = steps.get(slot);
    if (same === undefined) steps.set(slot, [step]);
    else same.push(step);
  }
  return steps;
}

/** KEYS and ARGV of the spend script, for one charge of parts that all have one slot. */
function stepCall(step: readonly StepPart[], asking: number): [keys: string[], args: string[]] {
  const policies = step.flatMap(({ part: { policy, limit }, isStranger }) => {
    const { mode, windowMs } = policy;
    return [mode === 'shadow' ? -limit : limit, isStranger ? -reservedOf(limit) : 0, windowMs];
  });
  const charge = [asking, step.length, ...step.map((_, i) => i + 1)];
  return [step.map(({ part }) => part.key), [JSON.stringify([policies, charge, []])]];
}

/** Whether only what is reserved is left, and not for this credential. */
function isClosed({ part: { policy, limit }, isStranger }: StepPart, used: number): boolean {
  return isStranger && policy.mode === 'enforce' && used < limit && used >= limit - reservedOf(limit);
}

/** Lowers what was charged to what is admitted. What cannot be given back ends with its window. */
function giveBack(store: StoreConnection, charged: readonly Charged[], admitted: number): void {
  const bySlot = new Map<number, { readonly keys: string[]; readonly args: string[] }>();
  for (const { part, slot, used, times, window } of charged) {
    const kept = Math.max(used, Math.min(used + admitted, part.limit)) - used;
    if (times <= kept) continue;
    const call = bySlot.get(slot) ?? { keys: [], args: [] };
    bySlot.set(slot, call);
    call.keys.push(part.key);
    call.args.push(String(window), String(times - kept));
  }
  for (const { keys, args } of bySlot.values()) store.run(GIVE_BACK, keys, args).catch(endsWithItsWindow);
}

function endsWithItsWindow(): void {}
