/**
 * Different values in a window of a fixed length or of a calendar: `a` counts the values that a client has used, and `b`
 * is 1 if the value of the request is one of them. Such a request takes nothing of the limit. A value is never given
 * back, because other requests with it may have passed since.
 *
 * In Redis the value of the key is a text: the number of the window, and for each value a space and its digest. No digest
 * contains a space, so a search finds whole digests only.
 */
import type { Algorithm, Allowance, WindowLua } from './algorithm.ts';

/** Characters of a value in the text. */
export const VALUE_LENGTH = 23;
/** The maximum of a limit of different values. Redis reads all of them for each request, at most 23 KB. */
export const DISTINCT_MAX = 1000;
/**
 * After an outage there may be more values than the limit, because gateways counted without each other. More than this
 * many limits are not stored.
 */
const LIMITS_MAX = 2;

/** Longer lists of values stay in the store. */
const LISTED_MAX = 64;
/** Contents that are no list count as none. */
const CONTENTS = "match(get(at), '^(%d+)( [%w%-_ ]*)$')";

/** @param windows the algorithm that counts requests in such windows */
export function distinctIn(windows: Algorithm, id: number, { number, left }: WindowLua): Algorithm {
  return {
    ...windows,
    id,
    keySuffix: `${windows.keySuffix}:distinct`,
    limitMax: () => DISTINCT_MAX,
    unitsOf: ({ b }, requests) => (b === 1 || requests === 0 ? 0 : 1),
    roomFor: (left, { b }) => (b === 1 || left >= 1 ? Number.POSITIVE_INFINITY : 0),
    allowance: (allowed: Allowance) =>
      windows.allowance({ ...allowed, limit: `${allowed.limit} different values` }),
    adjust: (state, amount, chargedAt, rule) =>
      amount < 0 || state.b === 1 ? state : windows.adjust(state, Math.min(1, amount), chargedAt, rule),
    lua: {
      read: `
local number, list = ${CONTENTS}
if not number or tonumber(number) < ${number('now')} then return 0, 0 end
return floor(#list / ${VALUE_LENGTH}), value and find(list, value, 1, true) and 1 or 0`,
      // The values of an exhausted bucket are listed in place of b, so that the gateway knows which ones pass.
      room: `
if b == 1 or a < capacity then return asking end
return 0, a <= ${LISTED_MAX} and '"' .. match(get(at), ' .*$') .. '"' or nil`,
      added: 'return 1 - b',
      write: `
local number, list = ${CONTENTS}
if not number or tonumber(number) < ${number('now')} then
  number, list = format('%.0f', ${number('now')}), ''
end
put(at, number .. list .. value, ${left} + 1000)`,
      adjust: `
local isKept = b == 1 or type(amount) == 'number' or a >= ${LIMITS_MAX} * limit
if isKept or ${number('moment')} < ${number('now')} then return a, b end
return a + 1, b`,
    },
  };
}
