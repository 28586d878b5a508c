/**
 * The one script. It decides a list of charges in one atomic step, each in order against what those before it left.
 *
 * KEYS  charge by charge: its proof marker if it has one, then its counters
 * ARGV  one JSON text: [[limit, window in ms, ...], [...]]. First the policies, a limit negative in shadow; then charge by
 *       charge how many ask, 1 if it has a proof marker, how many counters, and the policy of each, counted from 1
 *       (negative: only while the credential is unproven)
 * reply one JSON array of numbers: now in ms; then charge by charge how many are admitted, and per counter what was used
 *       before (-1: skipped, as the credential is proven)
 *
 * It counts first and takes back what was not admitted: nobody sees in between, and the usual charge costs one command.
 * Numbers travel as one text because Redis pays for each argument and each element of a reply, and parses JSON in C.
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
local bases = {}
for policy = 1, #policies / 2 do
  bases[policy] = (math.floor(now / policies[policy * 2]) % 1048576) * 4294967296
end

local function count(key, policy, asking)
  local base = bases[policy]
  local value = pcall('INCRBY', key, asking)
  local used = type(value) == 'number' and value - base - asking or -1
  if used >= 0 and used < 4294967296 then return used end
  local window = policies[policy * 2]
  call('SET', key, string.format('%.0f', base + asking), 'PX', window - now % window + 1000)
  return 0
end

local reply = { now }
local at, key = 1, 1
while charges[at] do
  local asking, parts = charges[at], charges[at + 2]
  local proven, exceeded = false, false
  if charges[at + 1] == 1 then
    proven = call('EXISTS', KEYS[key]) == 1
    key = key + 1
  end
  at = at + 2
  local admitted = asking
  local answer = #reply + 1
  reply[answer] = asking
  for part = 1, parts do
    local policy = charges[at + part]
    if policy < 0 and proven then
      reply[answer + part] = -1
    else
      policy = math.abs(policy)
      local used = count(KEYS[key + part - 1], policy, asking)
      local limit = policies[policy * 2 - 1]
      if used + asking > math.abs(limit) then
        exceeded = true
        if limit > 0 then admitted = math.max(0, math.min(admitted, limit - used)) end
      end
      reply[answer + part] = used
    end
  end
  if exceeded then
    reply[answer] = admitted
    for part = 1, parts do
      local used = reply[answer + part]
      local limit = math.abs(policies[math.abs(charges[at + part]) * 2 - 1])
      local excess = used + asking - math.max(used, math.min(used + admitted, limit))
      if used >= 0 and excess > 0 then call('DECRBY', KEYS[key + part - 1], excess) end
    end
  end
  key = key + parts
  at = at + parts + 1
end
return '[' .. table.concat(reply, ',') .. ']'
`;
