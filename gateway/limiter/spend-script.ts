/**
 * The one script. It decides a list of charges in one atomic step, each in order against what those before it left.
 *
 * KEYS  charge by charge: its proof marker if it has one, then its counters
 * ARGV  one JSON text: [[limit, window in ms, ...], [...]]. First the policies, a limit negative in shadow; then charge by
 *       charge how many ask, how many counters (negative: the charge has a proof marker), and the policy of each, counted
 *       from 1 (negative: only while the credential is unproven)
 * reply one JSON array of numbers: now in ms; then counter by counter what was used before (-1: skipped, as the credential
 *       is proven); then, for each charge of which not all are admitted, its place from 0 and how many are
 *
 * It counts first and takes back what was not admitted: nobody sees in between, and the usual charge costs one command.
 * Numbers travel as one text because Redis pays for each argument and each element of a reply, and parses JSON in C. A
 * number that becomes text, in the reply or as a command's argument, passes through printf: so few of them do.
 *
 * A counter's value is the number of its window (modulo 2^20) times 2^32 plus the count, so a value of an earlier
 * window is recognised as such whatever Redis thinks of the key's expiry at that very millisecond. The expiry only
 * collects garbage, and a second late: from Redis 7.2 on, expiry goes by the moment at which the script began, so at the
 * end of a window that TIME ends a counter could otherwise be gone before it.
 */
export const SPEND_SCRIPT = `
local call, pcall = redis.call, redis.pcall
local time = call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local ask = cjson.decode(ARGV[1])
local policies, charges = ask[1], ask[2]
local limits, windows, bases, shadow = {}, {}, {}, {}
for policy = 1, #policies / 2 do
  local limit, window = policies[policy * 2 - 1], policies[policy * 2]
  limits[policy], windows[policy], shadow[policy] = math.abs(limit), window, limit < 0
  bases[policy] = (math.floor(now / window) % 1048576) * 4294967296
end

local function count(key, policy, asking)
  local base, value = bases[policy], nil
  if asking == 1 then value = pcall('INCR', key) else value = pcall('INCRBY', key, asking) end
  local used = type(value) == 'number' and value - base - asking or -1
  if used >= 0 and used < 4294967296 then return used end
  local window = windows[policy]
  call('SET', key, string.format('%.0f', base + asking), 'PX', window - now % window + 1000)
  return 0
end

local reply, cut = { now }, {}
local said, at, key, place = 1, 1, 1, 0
while charges[at] do
  local asking, parts = charges[at], charges[at + 1]
  local proven, exceeded, admitted = false, false, asking
  at = at + 1
  if parts < 0 then
    parts = -parts
    proven = call('EXISTS', KEYS[key]) == 1
    key = key + 1
  end
  for part = 1, parts do
    local policy, used = charges[at + part], -1
    if policy > 0 or not proven then
      if policy < 0 then policy = -policy end
      used = count(KEYS[key + part - 1], policy, asking)
      if used + asking > limits[policy] then
        exceeded = true
        if not shadow[policy] then admitted = math.max(0, math.min(admitted, limits[policy] - used)) end
      end
    end
    reply[said + part] = used
  end
  if exceeded then
    cut[#cut + 1], cut[#cut + 2] = place, admitted
    for part = 1, parts do
      local used, limit = reply[said + part], limits[math.abs(charges[at + part])]
      local excess = used + asking - math.max(used, math.min(used + admitted, limit))
      if used >= 0 and excess > 0 then call('DECRBY', KEYS[key + part - 1], excess) end
    end
  end
  said, at, key, place = said + parts, at + parts + 1, key + parts, place + 1
end
for i = 1, #cut do reply[said + i] = cut[i] end
return '[' .. table.concat(reply, ',') .. ']'
`;
