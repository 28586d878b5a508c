/**
 * The one script. It decides a list of charges in one atomic step: reads every counter, decides each charge in order
 * against what the charges before it left, then writes.
 *
 * KEYS  the counters, then the proof markers, each once
 * ARGV  one JSON array of numbers: number of counters; per counter its limit (negative: shadow) and window in ms;
 *       then per charge: how many ask, the place of its proof marker in KEYS (0: none), how many counters,
 *       their places in KEYS (negative: only while the credential is unproven)
 * reply one JSON array of numbers: now in ms; then per charge: how many are admitted, 1 when the credential is proven,
 *       and per counter what was used before (-1: skipped)
 *
 * Numbers travel as one text because Redis pays for each argument and each element of a reply, and parses JSON in C.
 *
 * A counter's value is the number of its window (modulo 2^20) times 2^32 plus the count, so a value of an earlier
 * window is recognised as such whatever Redis thinks of the key's expiry at that very millisecond. The expiry only
 * collects garbage, and a second late: from Redis 7.2 on, expiry goes by the moment at which the script began, so at the
 * end of a window that TIME ends a counter could otherwise be gone before it.
 */
export const SPEND_SCRIPT = `
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local stored = redis.call('MGET', unpack(KEYS))
local ask = cjson.decode(ARGV[1])
local counters = ask[1]
local limits, windows, bases, before, used = {}, {}, {}, {}, {}
for i = 1, counters do
  limits[i] = ask[i * 2]
  local window = ask[i * 2 + 1]
  windows[i] = window
  bases[i] = (math.floor(now / window) % 1048576) * 4294967296
  local count = (tonumber(stored[i]) or 0) - bases[i]
  if count < 0 or count >= 4294967296 then count = 0 end
  before[i] = count
  used[i] = count
end
local reply = { now }
local at = counters * 2 + 2
while ask[at] do
  local asking = ask[at]
  local proof = ask[at + 1]
  local parts = ask[at + 2]
  local proven = proof > 0 and stored[proof]
  local admitted = asking
  for p = 1, parts do
    local place = ask[at + 2 + p]
    if place > 0 or not proven then
      local i = math.abs(place)
      if limits[i] > 0 and limits[i] - used[i] < admitted then admitted = math.max(0, limits[i] - used[i]) end
    end
  end
  reply[#reply + 1] = admitted
  reply[#reply + 1] = proven and 1 or 0
  for p = 1, parts do
    local place = ask[at + 2 + p]
    local i = math.abs(place)
    if place < 0 and proven then
      reply[#reply + 1] = -1
    else
      reply[#reply + 1] = used[i]
      used[i] = math.max(used[i], math.min(used[i] + admitted, math.abs(limits[i])))
    end
  end
  at = at + 3 + parts
end
for i = 1, counters do
  if used[i] > before[i] then
    if before[i] == 0 then
      redis.call('SET', KEYS[i], string.format('%.0f', bases[i] + used[i]), 'PX', windows[i] - now % windows[i] + 1000)
    else
      redis.call('INCRBY', KEYS[i], used[i] - before[i])
    end
  end
end
return '[' .. table.concat(reply, ',') .. ']'
`;
