/**
 * The one script. It decides a list of charges in one atomic step, each in order against what those before it left.
 *
 * KEYS  what other counting has to be added first; then, charge by charge, each part's: its counter, and of a credential
 *       that may be unproven also its proof marker and its address's counter for unproven ones
 * ARGV  one JSON text: [[limit, window in ms, ...], [...], [...]]. First the policies, a limit negative in shadow; then
 *       charge by charge how many ask, how many parts (negative: a credential among them may be unproven),
 *       and the policy of each, counted from 1 (negative: the very part); then what has to be added: policy and how many
 * reply one JSON array of numbers: now in ms; then part by part what was used before, and of a credential that may be
 *       unproven also what its address had used before (-1: it is proven, so nothing is charged there);
 *       then, for each charge of which not all are admitted, its place from 0 and how many are
 *
 * The script looks at an address's budget for unproven credentials first, and writes nothing for a request that it
 * denies. All else is counted first and what was not admitted is taken back: nobody sees in between, and the usual charge
 * costs one command. Numbers travel as one text because Redis pays for each argument and each element of a reply, and
 * parses JSON in C. A number that becomes text, in the reply or as a command's argument, passes through printf: so few
 * of them do.
 *
 * A counter's value is the number of its window (modulo 2^20) times 2^32 plus the count, so a value of an earlier
 * window is recognised as such whatever Redis thinks of the key's expiry at that very millisecond. The expiry only
 * collects garbage, and a second late: from Redis 7.2 on, expiry goes by the moment at which the script began, so at the
 * end of a window that TIME ends a counter could otherwise be gone before it.
 *
 * A credential is proven as long as its proof marker exists.
 */
import { storeScript } from '#gateway/store/connection.ts';

export const SPEND = storeScript(`
local call, pcall = redis.call, redis.pcall
local time = call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local ask = cjson.decode(ARGV[1])
local policies, charges, owed = ask[1], ask[2], ask[3]
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

local function look(key, policy)
  local value = pcall('GET', key)
  local used = type(value) == 'string' and (tonumber(value) or 0) - bases[policy] or -1
  if used >= 0 and used < 4294967296 then return used end
  return 0
end

local function takeBack(key, used, admitted, asking, limit)
  local excess = used + asking - math.max(used, math.min(used + admitted, limit))
  if excess <= 0 then return end
  local value = call('DECRBY', key, excess)
  if used == 0 and value % 4294967296 == 0 then call('DEL', key) end
end

local key = 1
for i = 1, #owed, 2 do
  count(KEYS[key], owed[i], owed[i + 1])
  key = key + 1
end

local reply, said, cut = { now }, 1, {}
local at, place = 1, 0

local function spend(asking, parts)
  local admitted, exceeded = asking, false
  for part = 1, parts do
    local policy = charges[at + part]
    local used = count(KEYS[key + part - 1], policy, asking)
    local room = limits[policy] - used
    if asking > room then
      exceeded = true
      if not shadow[policy] then admitted = math.max(0, math.min(admitted, room)) end
    end
    reply[said + part] = used
  end
  if exceeded then
    for part = 1, parts do
      takeBack(KEYS[key + part - 1], reply[said + part], admitted, asking, limits[charges[at + part]])
    end
  end
  said, key = said + parts, key + parts
  return admitted
end

local function spendUnproven(asking, parts)
  local admitted = asking
  local keys, policyOf, address, used = {}, {}, {}, {}
  for part = 1, parts do
    local policy = charges[at + part]
    keys[part], policyOf[part] = key, math.abs(policy)
    if policy > 0 then key = key + 1 else
      policy = -policy
      if call('PTTL', KEYS[key + 1]) < 0 then
        address[part] = look(KEYS[key + 2], policy)
        if not shadow[policy] then admitted = math.max(0, math.min(admitted, limits[policy] - address[part])) end
      end
      key = key + 3
    end
  end
  local denied = admitted == 0
  for part = 1, parts do
    local first, policy = KEYS[keys[part]], policyOf[part]
    if denied then used[part] = look(first, policy) else
      used[part] = count(first, policy, asking)
      if address[part] then count(KEYS[keys[part] + 2], policy, asking) end
      if not shadow[policy] then admitted = math.max(0, math.min(admitted, limits[policy] - used[part])) end
    end
  end
  for part = 1, parts do
    local policy = policyOf[part]
    if not denied then
      takeBack(KEYS[keys[part]], used[part], admitted, asking, limits[policy])
      if address[part] then
        takeBack(KEYS[keys[part] + 2], address[part], admitted, asking, limits[policy])
      end
    end
    said = said + 1
    reply[said] = used[part]
    if charges[at + part] < 0 then
      said = said + 1
      reply[said] = address[part] or -1
    end
  end
  return admitted
end

while charges[at] do
  local asking, parts = charges[at], charges[at + 1]
  at = at + 1
  local admitted
  if parts > 0 then admitted = spend(asking, parts) else
    parts = -parts
    admitted = spendUnproven(asking, parts)
  end
  if admitted < asking then cut[#cut + 1], cut[#cut + 2] = place, admitted end
  at, place = at + parts + 1, place + 1
end
for i = 1, #cut do reply[said + i] = cut[i] end
return '[' .. table.concat(reply, ',') .. ']'
`);
