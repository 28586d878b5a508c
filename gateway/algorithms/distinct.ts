/**
 * Different values in a window of a fixed length or of a calendar: `a` counts the values that a client has used, and `b`
 * is 1 if the value of the request is one of them. Such a request takes nothing of the limit. A value is never given
 * back, because other requests with it may have passed since.
 *
 * In Redis the value of the key is a hash with a field for the digest of each value, and one without a name for the number
 * of the window. So a request costs Redis the same at each number of values.
 */
import type { Algorithm, Allowance, WindowLua } from './algorithm.ts';

/** The maximum of a limit of different values. Redis stores all of them, and gateways remember some. */
export const DISTINCT_MAX = 1000;
/**
 * After an outage there may be more values than the limit, because gateways counted without each other. More than this
 * many limits are not stored.
 */
const LIMITS_MAX = 2;

/** Longer lists of values stay in the store. */
const LISTED_MAX = 64;
/**
 * Redis searches small hashes from end to end, unless one text is longer than 64 characters. The number of the window is
 * padded to this length, so each hash has a hash table.
 */
const NUMBER_LENGTH = 65;

/** @param windows the algorithm that counts requests in such windows */
export function distinctIn(windows: Algorithm, id: number, { number, left }: WindowLua): Algorithm {
  return {
    ...windows,
    id,
    keySuffix: `${windows.keySuffix}:values`,
    limitMax: () => DISTINCT_MAX,
    unitsOf: ({ b }, requests) => (b === 1 || requests === 0 ? 0 : 1),
    roomFor: (left, { b }) => (b === 1 || left >= 1 ? Number.POSITIVE_INFINITY : 0),
    allowance: (allowed: Allowance) =>
      windows.allowance({ ...allowed, limit: `${allowed.limit} different values` }),
    adjust: (state, amount, chargedAt, rule) =>
      amount < 0 || state.b === 1 ? state : windows.adjust(state, Math.min(1, amount), chargedAt, rule),
    lua: {
      // A key of another type has no window either.
      read: `
local found = pcall('HMGET', keys[at], '', value or '')
if (tonumber(found[1]) or -1) < ${number('now')} then return 0, 0 end
return call('HLEN', keys[at]) - 1, value and found[2] and 1 or 0`,
      // The values of an exhausted bucket are listed in place of b, so that the gateway knows which ones pass.
      room: `
if b == 1 or a < capacity then return asking end
if a > ${LISTED_MAX} then return 0 end
return 0, '"' .. table.concat(call('HKEYS', keys[at]), ' ') .. '"'`,
      added: 'return 1 - b',
      write: `
local key = keys[at]
local before = pcall('HGET', key, '')
if type(before) == 'table' or (tonumber(before) or -1) < ${number('now')} then
  call('UNLINK', key)
  call('HSET', key, '', format('%-${NUMBER_LENGTH}.0f', ${number('now')}))
  call('PEXPIRE', key, ${left} + 1000)
end
call('HSET', key, value, '')`,
      adjust: `
local isKept = b == 1 or type(amount) == 'number' or a >= ${LIMITS_MAX} * limit
if isKept or ${number('moment')} < ${number('now')} then return a, b end
return a + 1, b`,
    },
  };
}
