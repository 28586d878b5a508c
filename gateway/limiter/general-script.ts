/**
 * The script for charges that are not plain. It looks at all counters of a charge first and then charges all of them, or
 * none; nobody sees in between. Each of a list of charges is decided in order against what those before it left.
 *
 * KEYS  what other counting has to be added first; then, charge by charge, each part's counter, with the credential's
 *       proof marker before it where the part is about a credential that may be unproven
 * ARGV  one JSON text: [policies, charges, owed, leases]. Policies: algorithm (1 fixed window, 2 sliding window, 3 token
 *       bucket, 4 concurrency), limit, capacity (negative in shadow), window in ms. Charges: how many ask, how many parts,
 *       and of each part its policy, counted from 1 (negative: the part is about the credential of the part before it),
 *       and its cost. Owed: policy, units, and of a sliding window its number. Leases, where there are any: charge by
 *       charge what they are called
 * reply one JSON array of numbers: now in ms; then, charge by charge, how many are admitted, and of each part 1 if it was
 *       skipped because the credential is proven, else 0, and what it held before: two numbers, see level.ts
 *
 * A fixed window's value is the one of spend-script.ts, because plain charges count in it as well. A sliding window's is
 * its number and two counts, a token bucket's its moment and its backlog; of requests in flight it is a sorted set of leases
 * by their ends. What cannot be read is empty.
 */
import { storeScript } from '#gateway/store/connection.ts';
import { TAKE_LEASE_LUA } from './lease-scripts.ts';

/** What both scripts begin with: how counters are read and written. */
export const COUNTERS_LUA = `
local call, pcall, floor, ceil, max, min = redis.call, redis.pcall, math.floor, math.ceil, math.max, math.min
local time = call('TIME')
local now = time[1] * 1000 + floor(time[2] / 1000)

local function numbers(key, pattern)
  local value = pcall('GET', key)
  if type(value) ~= 'string' then return end
  local a, b, c = string.match(value, pattern)
  return tonumber(a), tonumber(b), tonumber(c)
end

local function put(key, ttl, pattern, ...)
  call('SET', key, string.format(pattern, ...), 'PX', string.format('%.0f', ttl))
end

local read, write = {}, {}

read[1] = function(key, window)
  local value = numbers(key, '^(%d+)$')
  local count = (value or 0) - (floor(now / window) % 1048576) * 4294967296
  if count < 0 or count >= 4294967296 then return 0, 0 end
  return count, 0
end
write[1] = function(key, window, limit, count)
  local base = (floor(now / window) % 1048576) * 4294967296
  put(key, window - now % window + 1000, '%.0f', base + count)
end

read[2] = function(key, window)
  local number, current, previous = numbers(key, '^(%d+) (%d+) (%d+)$')
  local behind = floor(now / window) - (number or -2)
  if behind == 0 then return current, previous end
  if behind == 1 then return 0, current end
  return 0, 0
end
write[2] = function(key, window, limit, current, previous)
  put(key, 2 * window - now % window + 1000, '%.0f %.0f %.0f', floor(now / window), current, previous)
end

read[3] = function(key, window, limit)
  local moment, backlog = numbers(key, '^(%d+) (%d+)$')
  if not moment then return 0, 0 end
  return max(0, backlog - max(0, now - moment) * limit), 0
end
write[3] = function(key, window, limit, backlog)
  put(key, ceil(backlog / limit) + 1000, '%.0f %.0f', now, backlog)
end

read[4] = function(key)
  local count = pcall('ZCOUNT', key, '(' .. string.format('%.0f', now), '+inf')
  if type(count) == 'number' then return count, 0 end
  call('DEL', key)
  return 0, 0
end
`;

export const SPEND_GENERAL = storeScript(`${COUNTERS_LUA}${TAKE_LEASE_LUA}
local function usedOf(algorithm, window, a, b)
  if algorithm == 1 or algorithm == 4 then return a end
  if algorithm == 2 then return a + ceil(b * (window - now % window) / window) end
  return ceil(a / window)
end

local ask = cjson.decode(ARGV[1])
local policies, charges, owed, leases = ask[1], ask[2], ask[3], ask[4]
local key, place = 1, 0

for i = 1, #owed, 3 do
  local row = owed[i] * 4 - 3
  local algorithm, limit, window = policies[row], policies[row + 1], policies[row + 3]
  local a, b = read[algorithm](KEYS[key], window, limit)
  local behind = algorithm == 2 and floor(now / window) - owed[i + 2] or 0
  if behind <= 0 then a = a + owed[i + 1] elseif behind == 1 then b = b + owed[i + 1] end
  if behind <= 1 then write[algorithm](KEYS[key], window, limit, a, b) end
  key = key + 1
end

local reply, said, at = { string.format('%.0f', now) }, 1, 1
while charges[at] do
  local admitted, parts = charges[at], charges[at + 1]
  at, place = at + 2, place + 1
  local skipped, first, keys, a, b, room = {}, at, {}, {}, {}, {}
  for part = 1, parts do
    local policy, cost = charges[at], charges[at + 1]
    at = at + 2
    skipped[part] = 0
    if policy < 0 then
      if call('PTTL', KEYS[key]) >= 0 then skipped[part] = 1 end
      key = key + 1
    end
    local row = math.abs(policy) * 4 - 3
    local algorithm, limit, capacity, window = unpack(policies, row, row + 3)
    keys[part], a[part], b[part] = KEYS[key], 0, 0
    key = key + 1
    if skipped[part] == 0 then
      a[part], b[part] = read[algorithm](keys[part], window, limit)
      room[part] = math.abs(capacity) - usedOf(algorithm, window, a[part], b[part])
      if capacity > 0 then admitted = max(0, min(admitted, floor(room[part] / cost))) end
    end
  end
  if admitted > 0 then
    for part = 1, parts do
      local policy, cost = charges[first + part * 2 - 2], charges[first + part * 2 - 1]
      local row = math.abs(policy) * 4 - 3
      local algorithm, limit, window = policies[row], policies[row + 1], policies[row + 3]
      local times = skipped[part] == 1 and 0 or min(admitted, floor(room[part] / cost))
      if algorithm == 4 and times > 0 then
        call('ZREMRANGEBYSCORE', keys[part], '-inf', string.format('%.0f', now))
        for position = 0, times - 1 do takeLease(keys[part], leases[place] .. '.' .. position) end
      elseif times > 0 then
        local units = times * cost
        if algorithm == 3 then units = units * window end
        write[algorithm](keys[part], window, limit, a[part] + units, b[part])
      end
    end
  end
  said = said + 1
  reply[said] = admitted
  for part = 1, parts do
    reply[said + 1] = skipped[part]
    reply[said + 2], reply[said + 3] = string.format('%.0f', a[part]), string.format('%.0f', b[part])
    said = said + 3
  end
end
return '[' .. table.concat(reply, ',') .. ']'
`);

/**
 * KEYS counters; ARGV one JSON list: of each its algorithm, limit, window in ms, units, and when they were charged, in ms.
 * What was charged to a window that is over, or has been drained since, is gone already.
 */
export const GIVE_BACK_GENERAL = storeScript(`${COUNTERS_LUA}
local list = cjson.decode(ARGV[1])
for i = 1, #KEYS do
  local algorithm, limit, window = list[i * 5 - 4], list[i * 5 - 3], list[i * 5 - 2]
  local units, moment = list[i * 5 - 1], list[i * 5]
  local a, b = read[algorithm](KEYS[i], window, limit)
  local behind = floor(now / window) - floor(moment / window)
  local before = a + b
  if algorithm == 3 then a = max(0, a - max(0, units * window - max(0, now - moment) * limit))
  elseif behind == 0 then a = max(0, a - units)
  elseif behind == 1 and algorithm == 2 then b = max(0, b - units) end
  if a + b == 0 then call('DEL', KEYS[i])
  elseif a + b ~= before then write[algorithm](KEYS[i], window, limit, a, b) end
end
return #KEYS
`);
