/**
 * To whom an address's budget for credentials that have not worked yet is open. It is one limit, and who asks for it
 * cannot be told apart by looking at a credential; so it goes by what the credential has done:
 *
 * - one that worked within the last 30 days has all of it;
 * - one that was not used yet in this window finds the last fifth closed: that is kept for the former;
 * - one that was used already finds the last two fifths closed, so that invented credentials which come again and again
 *   leave something to newcomers: unless it made more than half of what the address has used. One alone has the limit.
 *
 * Of a sliding window or a token bucket "used" is what its level says (level.ts).
 */

/** Of a limit, what only credentials with a history may spend. */
export function reservedOf(limit: number): number {
  return limit === 1 ? 0 : Math.ceil(limit / 5);
}

/** Of a limit, what is closed to credentials that come again without having worked. */
export function closedToRepeated(limit: number): number {
  return Math.min(2 * reservedOf(limit), limit - 1);
}

/**
 * Of a limit, what is closed to a credential without a history: while no more than that is left, it is denied.
 *
 * @param own what was used of the credential's own counter
 * @param used what was used of its address's
 */
export function closedTo(own: number, used: number, limit: number): number {
  if (own === 0) return reservedOf(limit);
  return 2 * own > used ? 0 : closedToRepeated(limit);
}

/**
 * The same for the store's scripts, of several requests at once: `timesFor` says how many of them find room one after
 * the other, each with its `cost`.
 */
export const TIMES_FOR_LUA = `
local function timesFor(own, used, limit, reserved, cost)
  local room, times = limit - used, 0
  if own == 0 then
    if room <= reserved or room < cost then return 0 end
    own, used, room, times = cost, used + cost, room - cost, 1
  end
  local all = math.max(0, math.floor(room / cost))
  if 2 * own > used then return times + all end
  local closed = math.min(2 * reserved, limit - 1)
  local open = math.max(0, math.min(all, math.ceil((room - closed) / cost)))
  if 2 * (own + open * cost) > used + open * cost then open = all end
  return times + open
end
`;
