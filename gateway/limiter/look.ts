/** Reads and clears the counters of one client in the store, for operators. It charges nothing. */
import type { CounterState } from '#gateway/algorithms/algorithm.ts';
import { scriptWindow } from '#gateway/algorithms/calendar-window.ts';
import type { Identity } from '#gateway/identity/digest.ts';
import type { Counter } from '#gateway/policy/counter.ts';
import { KEYS_PER_SCRIPT_MAX, type StoreScript, storeScript } from '#gateway/store/connection.ts';
import type { Millis } from '#shared/clock.ts';
import { Bucket, proofKey } from './charge.ts';
import { FORGET_VISITS, historyKey } from './history-store.ts';
import { READ_LUA } from './script.ts';

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

/** Says what to read; Control explains the fields. */
interface Looked {
  readonly identity: Identity;
  readonly counters: readonly Counter[];
  readonly limits: readonly number[];
  readonly values: readonly (string | null)[];
}

/**
 * Reads the counters of one identity, and whether it is proven.
 *
 * KEYS proof marker, then counters of the same identity, then markers of values; ARGV a JSON list with algorithm, window,
 * limit and the place of the value's marker in KEYS, or 0, for each counter. Returns the time, the remaining ms of the
 * proof marker (PTTL), and for each counter its two numbers, and 1 if the value was used before.
 */
const LOOK = storeScript(`${READ_LUA}
local list = cjson.decode(ARGV[1])
local reply = { string.format('%.0f', now), redis.call('PTTL', KEYS[1]) }
for at = 1, #list, 4 do
  local a, b = read(list[at], (at + 7) / 4, list[at + 1], list[at + 2])
  reply[#reply + 1], reply[#reply + 2] = format('%.0f', a), format('%.0f', b)
  reply[#reply + 1] = list[at + 3] > 0 and isUsed(list[at + 3]) and 1 or 0
end
return reply
`);

/** Deletes counters. KEYS the counters of one identity. */
const CLEAR = storeScript(`return redis.call('DEL', unpack(KEYS))`);

/** @param now time of this process, for windows of the calendar */
export async function look(
  run: Run,
  { identity, counters, limits, values }: Looked,
  now: Millis,
): Promise<Look> {
  const states: CounterState[] = [];
  const used: boolean[] = [];
  let at: Millis = 0;
  let ttlMs = -2;
  for (let from = 0; from === 0 || from < counters.length; from += KEYS_PER_SCRIPT_MAX) {
    const some = counters
      .slice(from, from + KEYS_PER_SCRIPT_MAX)
      .map((counter, i) => new Bucket(counter, identity, [], 1, limits[from + i], values[from + i]));
    const keys = [proofKey(identity), ...some.map(({ key }) => key)];
    const list = some.flatMap(({ algorithm, policy: { windowMs, calendar }, limit, valueKey }) => [
      algorithm.id,
      calendar === null ? windowMs : scriptWindow(calendar, now),
      limit,
      valueKey === null ? 0 : keys.push(valueKey),
    ]);
    const reply = (await run(LOOK, keys, [JSON.stringify(list)])) as unknown[];
    const [time = 0, ttl = -2, ...numbers] = reply.map(Number);
    at = time;
    ttlMs = ttl;
    for (let i = 0; i < numbers.length; i += 3) {
      states.push({ at, a: numbers[i] ?? 0, b: numbers[i + 1] ?? 0 });
      used.push(numbers[i + 2] === 1);
    }
  }
  return { now: at, states, used, provenUntil: ttlMs < 0 ? null : at + ttlMs };
}

/** Clears the counters of a client and the days of its visits. */
export async function clear(run: Run, identity: Identity, counters: readonly Counter[]): Promise<void> {
  const keys = keysOf(identity, counters);
  for (let at = 0; at < keys.length; at += KEYS_PER_SCRIPT_MAX)
    await run(CLEAR, keys.slice(at, at + KEYS_PER_SCRIPT_MAX), []);
  await run(FORGET_VISITS, [historyKey(identity), proofKey(identity)], []);
}

function keysOf(identity: Identity, counters: readonly Counter[]): string[] {
  return counters.map((counter) => new Bucket(counter, identity).key);
}
