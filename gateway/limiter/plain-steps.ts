/** Steps of charges that are plain. */
import { storeScript } from '#gateway/store/connection.ts';
import { Charge, proofKey, reservedOf } from './charge.ts';
import { readReply, UnreadableReplyError } from './check.ts';
import { untilWindowEnd } from './level.ts';
import { SPEND } from './spend-script.ts';
import type { StepDialect, StepPart } from './steps.ts';

/** KEYS the proof marker, counters of the credential; ARGV their windows in ms. Replies the marker's PTTL, then for each counter whether it is used. */
const LOOK = storeScript(`
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local reply = { redis.call('PTTL', KEYS[1]) }
for i = 2, #KEYS do
  local value = tonumber(redis.call('GET', KEYS[i]) or 0)
  local base = (math.floor(now / tonumber(ARGV[i - 1])) % 1048576) * 4294967296
  reply[i] = value > base and value < base + 4294967296 and 1 or 0
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
  async look(store, credential, counters) {
    const keys = [proofKey(credential), ...counters.map(({ key }) => key)];
    const windows = counters.map(({ policy }) => String(policy.windowMs));
    const reply = await store.run(LOOK, keys, windows);
    if (!Array.isArray(reply) || reply.length !== keys.length)
      throw new UnreadableReplyError('the store sent a reply that cannot be read');
    const [ttl, ...used]: unknown[] = reply;
    return { proofTtlMs: Number(ttl), isUsed: used.map((one) => Number(one) === 1), levels: [] };
  },

  async ask(store, step, listeners) {
    const parts = step.map(({ part }) => part);
    const asked = { charge: new Charge(parts, true), listeners: [...listeners] };
    const reply = readReply(await store.run(SPEND, ...stepCall(step, listeners.length)), [asked]);
    const [answer] = reply.answers;
    if (answer === undefined) throw new UnreadableReplyError('the store sent a reply of another length');
    const met = step.map(({ part: { policy }, isStranger }, i) => {
      const used = answer.spent.used[i] ?? 0;
      // Only what is reserved is left, and not for this credential.
      const isClosed =
        isStranger &&
        policy.mode === 'enforce' &&
        used < policy.limit &&
        used >= policy.limit - reservedOf(policy.limit);
      return {
        used: isClosed ? policy.limit : used,
        charged: used,
        capacity: policy.limit,
        level: null,
        held: null,
      };
    });
    return { now: reply.now, admitted: answer.spent.admitted, met };
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
  const policies = step.flatMap(({ part: { policy }, isStranger }) => {
    const { limit, mode, windowMs } = policy;
    return [mode === 'shadow' ? -limit : limit, isStranger ? -reservedOf(limit) : 0, windowMs];
  });
  const charge = [asking, step.length, ...step.map((_, i) => i + 1)];
  return [step.map(({ part }) => part.key), [JSON.stringify([policies, charge, []])]];
}
