/**
 * Requests in flight: `a` counts them. Each holds a lease in the counter (leases.ts), which expires unless it is
 * renewed.
 *
 * In Redis the value is a sorted set of leases by their expiry.
 */
import type { Millis } from '#shared/clock.ts';
import type { Algorithm } from './algorithm.ts';

/** A lease expires after this time unless it is renewed. */
export const LEASE_MS: Millis = 30_000;
/** Retry-After of a denial, because the end of a request in flight is unknown. */
const TRY_AGAIN_MS: Millis = 1000;

/** Adds the lease `member` to `key`. */
export const TAKE_LEASE_LUA = `
redis.call('ZADD', key, string.format('%.0f', now + ${LEASE_MS}), member)
redis.call('PEXPIRE', key, ${LEASE_MS + 1000})`;

export const CONCURRENCY: Algorithm = {
  id: 4,
  keySuffix: ':leases',
  isHeld: true,
  isBacklog: false,
  limitMax: () => Number.POSITIVE_INFINITY,
  allowance: ({ limit }) => `${limit} in flight at once`,
  span: () => 'at once',
  quotaSeconds: () => null,
  amountPerUnit: () => 1,
  windowAt: () => 0,
  // The state does not change with time, because leases are given back one by one.
  advance: (state, now) => ({ ...state, at: now }),
  used: ({ a }) => a,
  resetMs: ({ a }) => (a > 0 ? TRY_AGAIN_MS : 0),
  retryMs: () => TRY_AGAIN_MS,
  adjust: (state) => state,

  lua: {
    read: `
local count = pcall('ZCOUNT', keys[at], '(' .. now, '+inf')
if type(count) == 'number' then return count, 0 end
call('DEL', keys[at])
return 0, 0`,
    used: 'return a',
    unit: 'return 1',
    write: `
local key = keys[at]
call('ZREMRANGEBYSCORE', key, '-inf', now)
for position = 0, added - 1 do
  local member = lease .. '.' .. position${TAKE_LEASE_LUA}
end`,
    adjust: 'return a, b',
  },
};
