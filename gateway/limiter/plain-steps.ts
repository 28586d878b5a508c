/** Steps of charges that are plain. */
import { storeScript } from '#gateway/store/connection.ts';
import type { Millis } from '#shared/clock.ts';
import { Charge, proofKey } from './charge.ts';
import { readReply, UnreadableReplyError } from './check.ts';
import { untilWindowEnd } from './level.ts';
import { SPEND } from './spend-script.ts';
import type { StepDialect, StepPart } from './steps.ts';
import { closedTo, reservedOf } from './unproven-budget.ts';

/** KEYS proof markers and credentials' counters; ARGV for each its window in ms, 0 for a marker. Replies for each the marker's PTTL, or what the counter has counted. */
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
    reply[i] = value > base and value < base + 4294967296 and value - base or 0
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

export const PLAIN_STEPS: StepDialect = {
  async look(store, credentials) {
    /** Window in ms, 0 for a marker, by key. */
    const asked = new Map<string, Millis>();
    for (const { proof, key, policy } of credentials) {
      asked.set(proofKey(proof), 0);
      asked.set(key, policy.windowMs);
    }
    const markers = new Map<string, Millis>();
    const used = new Map<string, number>();
    const slots = Map.groupBy(asked.keys(), (key) => store.slotOf(key));
    await Promise.all(
      [...slots.values()].map(async (keys) => {
        const windows = keys.map((key) => String(asked.get(key) ?? 0));
        const reply = await store.run(LOOK, keys, windows);
        if (!Array.isArray(reply) || reply.length !== keys.length)
          throw new UnreadableReplyError('the store sent a reply that cannot be read');
        for (const [i, key] of keys.entries()) {
          if (asked.get(key) === 0) markers.set(key, Number(reply[i]));
          else used.set(key, Number(reply[i]));
        }
      }),
    );
    return { markers, used, levels: new Map() };
  },

  async ask(store, step, { listeners }) {
    const parts = step.map(({ part }) => part);
    const asked = { charge: new Charge(parts, true), listeners: [...listeners], leases: null };
    const reply = readReply(await store.run(SPEND, ...stepCall(step, listeners.length)), [asked]);
    const [answer] = reply.answers;
    if (answer === undefined) throw new UnreadableReplyError('the store sent a reply of another length');
    const { admitted } = answer.spent;
    const met = step.map(({ part: { policy, limit }, ownUsed }, i) => {
      const used = answer.spent.used[i] ?? 0;
      const charged = used + admitted;
      const closed = ownUsed === null ? 0 : closedTo(ownUsed + admitted, charged, limit);
      const isClosed = policy.mode === 'enforce' && closed > 0 && charged >= limit - closed;
      return { used, isClosed, capacity: limit, level: null, held: null };
    });
    return { now: reply.now, admitted, met };
  },

  giveBack(store, list) {
    const keys = list.map(({ part }) => part.key);
    const args = list.flatMap(({ part: { policy }, times, chargedAt }) => [
      String(Math.floor(chargedAt / policy.windowMs) % 1_048_576),
      String(times),
    ]);
    return store.run(GIVE_BACK, keys, args);
  },

  timesOf: (parts, now) => parts.map(({ policy }) => untilWindowEnd(now, policy.windowMs)),
};

/** KEYS and ARGV of the spend script, for one charge of parts that all have one slot. */
function stepCall(step: readonly StepPart[], asking: number): [keys: string[], args: string[]] {
  const policies = step.flatMap(({ part: { policy, limit } }) => {
    const { mode, windowMs } = policy;
    return [mode === 'shadow' ? -limit : limit, reservedOf(limit), windowMs];
  });
  const charge = [asking, step.length, ...step.map((_, i) => i + 1)];
  const owns = step.map(({ ownUsed }) => ownUsed ?? -1);
  return [step.map(({ part }) => part.key), [JSON.stringify([policies, charge, [], owns])]];
}
