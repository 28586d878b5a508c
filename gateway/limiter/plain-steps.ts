/** Steps of charges that are plain. */
import { storeScript } from '#gateway/store/connection.ts';
import { Charge } from './charge.ts';
import { readReply, scriptCall, UnreadableReplyError } from './check.ts';
import { untilWindowEnd } from './level.ts';
import { SPEND } from './spend-script.ts';
import type { StepDialect } from './steps.ts';

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
  async ask(store, step, { listeners }) {
    const parts = step.map(({ part }) => part);
    const asked = { charge: new Charge(parts, true), listeners: [...listeners], leases: null };
    const { keys, args } = scriptCall([asked]);
    const reply = readReply(await store.run(SPEND, keys, args), [asked]);
    const [answer] = reply.answers;
    if (answer === undefined) throw new UnreadableReplyError('the store sent a reply of another length');
    const { admitted, used } = answer.spent;
    const met = step.map(({ part: { limit } }, i) => ({
      used: used[i] ?? 0,
      capacity: limit,
      level: null,
      held: null,
    }));
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
