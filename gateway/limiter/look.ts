/** Reads and clears the counters of one client in the store, for operators. It charges nothing. */
import { type CounterState, EMPTY } from '#gateway/algorithms/algorithm.ts';
import type { Identity } from '#gateway/identity/digest.ts';
import type { Counter } from '#gateway/policy/counter.ts';
import { inCalls, KEYS_PER_SCRIPT_MAX, type StoreScript, storeScript } from '#gateway/store/connection.ts';
import type { Millis } from '#shared/clock.ts';
import { Bucket, Charge, proofKey } from './charge.ts';
import { keysOf, readReply, scriptCall } from './check.ts';
import { historyKey } from './history.ts';
import { SPEND } from './script.ts';

/** The state of the counters of one identity at one time. */
export interface Look {
  /** Time of the reading, on the clock that windows use. Milliseconds since the epoch. */
  readonly now: Millis;
  /** One state for each counter. */
  readonly states: readonly CounterState[];
  /** For each counter, whether the value was used before in the window. */
  readonly used: readonly boolean[];
  /** Expiry of the credential's proof, possibly in the past. null for an unproven credential or an address. */
  readonly provenUntil: Millis | null;
}

/** Runs a script in the store. */
type Run = (script: StoreScript, keys: readonly string[], args: readonly string[]) => Promise<unknown>;

/** KEYS: a proof marker. Returns the time, and how many milliseconds the marker has left (PTTL). */
const PROOF = storeScript(`
local time = redis.call('TIME')
return { string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000)), redis.call('PTTL', KEYS[1]) }
`);

/**
 * Deletes the days of a client, which is then no regular any more. The proof of a credential stays.
 *
 * KEYS: history and marker.
 */
const FORGET_VISITS = storeScript(`
if redis.call('DEL', KEYS[1]) == 1 then return redis.call('DEL', KEYS[2]) end
return 0
`);

/** Deletes counters. KEYS the counters of one identity. */
const CLEAR = storeScript(`return redis.call('DEL', unpack(KEYS))`);

/**
 * Reads the counters of one identity, and whether it is proven. A check for which nobody asks charges nothing.
 *
 * @param now time of this process, for windows of the calendar
 */
export async function look(
  run: Run,
  now: Millis,
  identity: Identity,
  counters: readonly Counter[],
  limits: readonly number[] = [],
  values: readonly (string | null)[] = [],
): Promise<Look> {
  const checks = counters.map((counter, i) => ({
    charge: new Charge([new Bucket(counter, identity, [], 1, limits[i], values[i])]),
    listeners: [],
    leases: null,
  }));
  const states: CounterState[] = [];
  const used: boolean[] = [];
  for (const some of inCalls({ slotOf: () => null }, checks, () => '', keysOf)) {
    const { keys, args } = scriptCall(now, some);
    for (const { spent } of readReply(await run(SPEND, keys, args), some))
      for (const state of spent.states) {
        states.push(state?.state ?? EMPTY);
        used.push(state?.what === 'used-value');
      }
  }
  const [at = 0, ttlMs = -2] = ((await run(PROOF, [proofKey(identity)], [])) as unknown[]).map(Number);
  return { now: states.at(-1)?.at ?? at, states, used, provenUntil: ttlMs < 0 ? null : at + ttlMs };
}

/** Clears the counters of a client and the days of its visits. */
export async function clear(run: Run, identity: Identity, counters: readonly Counter[]): Promise<void> {
  const keys = counters.map((counter) => new Bucket(counter, identity).key);
  for (let at = 0; at < keys.length; at += KEYS_PER_SCRIPT_MAX)
    await run(CLEAR, keys.slice(at, at + KEYS_PER_SCRIPT_MAX), []);
  await run(FORGET_VISITS, [historyKey(identity), proofKey(identity)], []);
}
