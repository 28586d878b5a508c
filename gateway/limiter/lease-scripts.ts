/** What the store does with leases beside the check that takes them (general-script.ts). */
import { storeScript } from '#gateway/store/connection.ts';
import type { ScriptCall } from './check.ts';
import { LEASE_MS, type Lease } from './leases.ts';

/** Redis runs one script at a time. */
export const LEASES_PER_SCRIPT_MAX = 200;

/** What an added lease does to its counter; `now` is the store's time in ms. */
export const TAKE_LEASE_LUA = `
local function takeLease(key, member)
  redis.call('ZADD', key, string.format('%.0f', now + ${LEASE_MS}), member)
  redis.call('PEXPIRE', key, ${LEASE_MS + 1000})
end
`;

/** KEYS counters; ARGV of each the lease that is still held. One that had ended is taken again: its request is not over. */
export const RENEW = storeScript(`
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
${TAKE_LEASE_LUA}
for i = 1, #KEYS do takeLease(KEYS[i], ARGV[i]) end
return #KEYS
`);

/** KEYS counters; ARGV of each the lease that is given back. */
export const RELEASE = storeScript(`
for i = 1, #KEYS do redis.call('ZREM', KEYS[i], ARGV[i]) end
return #KEYS
`);

/** KEYS and ARGV of either. All have one slot. */
export function leaseCall(leases: readonly Lease[]): {
  readonly keys: ScriptCall['keys'];
  readonly args: readonly string[];
} {
  return { keys: leases.map(({ key }) => key), args: leases.map(({ member }) => member) };
}
