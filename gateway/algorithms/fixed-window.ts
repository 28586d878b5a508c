/**
 * Fixed windows, aligned to the epoch. `a` counts the units of the current window.
 *
 * In Redis the value is the number of the window (modulo 2^20) times 2^32 plus the count. So a value of an earlier
 * window is recognised even if Redis has not expired the key in that millisecond, and one INCRBY charges it. The expiry
 * only frees memory, and is a second later than the end of the window. From Redis 7.2 on, expiry is compared with the
 * time at which the script began, so a counter could otherwise disappear before its window ends.
 */
import { type Algorithm, COUNT_MAX, untilWindowEnd } from './algorithm.ts';

export const FIXED_WINDOW: Algorithm = {
  id: 1,
  keySuffix: '',
  isHeld: false,
  isBacklog: false,
  limitMax: () => Number.POSITIVE_INFINITY,
  allowance: ({ limit, window }) => `${limit} in ${window}`,
  span: (windowSeconds) => `${windowSeconds} s`,
  quotaSeconds: (windowSeconds) => windowSeconds,
  amountPerUnit: () => 1,
  windowAt: (at, { windowMs }) => Math.floor(at / windowMs),

  advance(state, now, { windowMs }) {
    const isSame = Math.floor(state.at / windowMs) >= Math.floor(now / windowMs);
    return { at: now, a: isSame ? state.a : 0, b: 0 };
  },

  used: ({ a }) => a,
  resetMs: ({ at }, { windowMs }) => untilWindowEnd(at, windowMs),
  retryMs: ({ at }, _room, { windowMs }) => untilWindowEnd(at, windowMs),

  adjust(state, amount, chargedAt, { windowMs }) {
    const isSame = Math.floor(chargedAt / windowMs) >= Math.floor(state.at / windowMs);
    return isSame ? { ...state, a: Math.min(COUNT_MAX, Math.max(0, state.a + amount)) } : state;
  },

  lua: {
    read: `
local count = (tonumber(get(at)) or 0) - (now - now % window) / window % 1048576 * 4294967296
if count >= 0 and count < 4294967296 then return count, 0 end
return 0, 0`,
    used: 'return a',
    unit: 'return 1',
    write: `
local value = a > added and pcall('INCRBY', keys[at], added)
if type(value) == 'number' then fresh[keys[at]] = value else
  put(at, (now - now % window) / window % 1048576 * 4294967296 + a, left(window) + 1000)
end`,
    adjust: `
if floor(moment / window) < floor(now / window) then return a, b end
return min(${COUNT_MAX}, max(0, a + amount)), b`,
  },
};
