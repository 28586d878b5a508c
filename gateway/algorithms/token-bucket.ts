/**
 * A token bucket, stored as its backlog `a`: each unit adds the milliseconds of the window, and each millisecond
 * removes the limit. The backlog does not depend on the limit, so another limit applies at once. All numbers are whole:
 * a limit times a window in milliseconds stays below 2^52 (policy/file/load.ts).
 *
 * In Redis the value is a text: the time of the last charge, and the backlog at that time.
 */
import { type Algorithm, type CounterState, countableIn, PRODUCT_MAX, type Rule } from './algorithm.ts';

export const TOKEN_BUCKET: Algorithm = {
  id: 3,
  keySuffix: ':token',
  isHeld: false,
  isBacklog: true,
  limitMax: countableIn,
  allowance: ({ limit, window, capacity }) =>
    `${limit} in ${window}, refilled steadily${capacity === null ? '' : `, and ${capacity} at once`}`,
  span: (windowSeconds) => `${windowSeconds} s`,
  quotaSeconds: (windowSeconds, capacity, limit) => Math.ceil((capacity * windowSeconds) / limit),
  amountPerUnit: (windowMs) => windowMs,
  windowAt: () => 0,

  advance(state, now, { limit }) {
    const drained = Math.max(0, now - state.at) * limit;
    return { at: now, a: Math.max(0, Math.ceil(state.a - drained)), b: 0 };
  },

  used: ({ a }, windowMs) => Math.ceil(a / windowMs),
  resetMs: ({ a }, rule) => untilDrained(a, rule),
  retryMs: ({ a }, room, rule) => untilDrained(a - room * rule.windowMs, rule),

  adjust(state, amount, chargedAt, { limit }) {
    const drained = amount < 0 ? Math.max(0, state.at - chargedAt) * limit : 0;
    const left = amount < 0 ? Math.min(0, Math.ceil(amount + drained)) : amount;
    return { ...state, a: Math.min(PRODUCT_MAX, Math.max(0, state.a + left)) };
  },

  lua: {
    read: `
local moment, backlog = match(get(at), '^(%d+) (%d+)$')
if not moment then return 0, 0 end
return max(0, backlog - max(0, now - moment) * limit), 0`,
    used: 'return ceil(a / window)',
    unit: 'return window',
    write: `
put(at, format('%.0f %.0f', now, a), format('%.0f', ceil(a / limit) + 1000))`,
    adjust: `
if amount < 0 then amount = min(0, amount + max(0, now - moment) * limit) end
return min(${PRODUCT_MAX}, max(0, a + amount)), b`,
  },
};

function untilDrained(backlog: CounterState['a'], { limit }: Rule): number {
  return backlog <= 0 ? 0 : Math.ceil(backlog / limit);
}
