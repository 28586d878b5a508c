/**
 * The script that decides charges. It decides a list of charges in one atomic step, in order, each after the ones
 * before it. It reads all counters of a charge first, and then charges all of them, or none: a denied request writes
 * nothing.
 *
 * KEYS: the counters of the adjustments. Then, for each charge, the counters of its buckets. A bucket that is charged
 * only for unproven credentials has their proof markers before it. A counter of different values has the marker of the
 * request's value behind it. The marker is set when the value is first counted, and then holds the end of the window. A
 * request whose marker is set takes nothing.
 *
 * ARGV: one JSON array with the lengths of two lists, the lists, and the name of the leases of each charge if any charge
 * takes some. Each bucket has the algorithm's id, limit, capacity (negative if the policy never denies) and window. Each
 * adjustment has a bucket, its amount, the time of its charge, and 1 if it has the marker of a value. Each charge has the
 * number of requests, the number of buckets, and the buckets, each with its cost, which is 0 if it has the marker of a value,
 * and the number of its proof markers.
 *
 * Reply: one JSON array of numbers. It begins with the time in seconds and microseconds. Each charge has the number of
 * admitted requests (-1: all), and for each bucket the two numbers of its counter before, and 1 or 0 for the marker of a
 * value if it has one. If a credential is proven, nothing is charged for that bucket. Then its first number is -1, and its
 * second number is the place of the credential's marker, from 0.
 *
 * All numbers are in one flat array because Redis spends time on each argument, each element of a reply and each table,
 * and parses JSON in C. Converting a number to text uses printf, so the most common ones stay texts.
 */

import type { AlgorithmLua } from '#gateway/algorithms/algorithm.ts';
import { ALGORITHMS } from '#gateway/algorithms/table.ts';
import { storeScript } from '#gateway/store/connection.ts';

/** Returns Lua code that calls the function of the counter's algorithm. */
function luaOf(name: keyof AlgorithmLua, parameters: string): string {
  const branches = Object.values(ALGORITHMS).map(
    ({ id, lua }) => `if algorithm == ${id} then\n${lua[name]}\n`,
  );
  return `local function ${name}(algorithm, ${parameters})\n${branches.join('else')}end\nend`;
}

/** One MGET reads all texts; values that the script has written since are in `fresh`. */
export const SPEND = storeScript(`
local call, pcall, floor, ceil, abs, max, min = redis.call, redis.pcall, math.floor, math.ceil, math.abs, math.max, math.min
local match, format, keys = string.match, string.format, KEYS
local time = call('TIME')
local now = time[1] * 1000 + floor(time[2] / 1000)
local values, fresh = call('MGET', unpack(keys)), {}

local function get(at)
  return fresh[keys[at]] or values[at] or ''
end
-- Returns -1 if one of several credentials is proven, and the place of its marker from 0.
local function proven(at, markers)
  for place = 0, markers - 1 do
    if get(at + place) ~= '' then return -1, place end
  end
  return 0, 0
end
local function isUsed(at)
  return (tonumber(get(at)) or 0) > now
end
-- The time until the window of now ends. A calendar passes the bounds of three windows.
local function left(window)
  if type(window) == 'number' then return window - now % window end
  return max(0, (now < window[3] and window[3] or now < window[4] and window[4] or window[5]) - now)
end
local function text(number)
  if number == 0 then return '0' end
  return number < 1e14 and number or format('%.0f', number)
end
local function put(at, value, ttl)
  fresh[keys[at]] = value
  call('SET', keys[at], value, 'PX', ttl)
end
local function use(at, window)
  put(at, format('%.0f', now + left(window)), left(window) + 1000)
end
${luaOf('read', 'at, window, limit')}
${luaOf('used', 'window, a, b')}
${luaOf('unit', 'window')}
${luaOf('write', 'at, window, limit, a, b, added, lease')}
${luaOf('adjust', 'window, limit, a, b, amount, moment')}

local LIMIT, CAPACITY, WINDOW = 1, 2, 3
-- Behind these, an adjustment has three numbers and the bucket of a charge two.
local AMOUNT, MOMENT, HAS_VALUE, COST, MARKERS = 4, 5, 6, 4, 5
local ask, key = cjson.decode(ARGV[1]), 1
local charges = 2 + ask[1]
local leases = charges + ask[2]

for i = 3, charges, 7 do
  local algorithm, amount, hasValue = ask[i], ask[i + AMOUNT], ask[i + HAS_VALUE] == 1
  -- A value counts once. It is never given back, because other requests with it may have passed since.
  if not hasValue or amount > 0 and not isUsed(key + 1) then
    local limit, window = ask[i + LIMIT], ask[i + WINDOW]
    local a, b = read(algorithm, key, window, limit)
    local nextA, nextB = adjust(algorithm, window, limit, a, b, hasValue and 1 or amount, ask[i + MOMENT])
    if nextA ~= a or nextB ~= b then
      if nextA + nextB > 0 then write(algorithm, key, window, limit, nextA, nextB, nextA - a) else
        fresh[keys[key]] = ''
        call('DEL', keys[key])
      end
      if hasValue then use(key + 1, window) end
    end
  end
  key = key + (hasValue and 2 or 1)
end

local reply, said, at, place = { time[1], time[2], 0, 0, 0 }, 2, charges + 1, 0
-- The two numbers of each counter of a charge, how many requests fit, and whether their value was used before.
local before = { 0, 0, 0, 0, 0, 0, 0, 0 }
while at <= leases do
  local asking, buckets = ask[at], ask[at + 1]
  local first, firstKey, head, admitted = at + 2, key, said + 1, asking
  at, said, place = first, head, place + 1
  for i = 1, buckets * 4, 4 do
    local algorithm, cost, fit, known = ask[at], ask[at + COST], 0, false
    local a, b = proven(key, ask[at + MARKERS])
    key = key + ask[at + MARKERS]
    if a == 0 then
      local capacity, window = ask[at + CAPACITY], ask[at + WINDOW]
      a, b = read(algorithm, key, window, ask[at + LIMIT])
      fit = floor((abs(capacity) - used(algorithm, window, a, b)) / max(1, cost))
      if cost == 0 then
        known = isUsed(key + 1)
        fit = (known or fit > 0) and asking or 0
      end
      if fit < admitted and capacity > 0 then admitted = max(0, fit) end
    end
    before[i], before[i + 1], before[i + 2], before[i + 3] = a, b, fit, known
    reply[said + 1], reply[said + 2] = text(a), text(b)
    at, key, said = at + 6, key + 1, said + 2
    if cost == 0 then
      reply[said + 1] = known and '1' or '0'
      key, said = key + 1, said + 1
    end
  end
  reply[head] = admitted == asking and '-1' or text(admitted)
  if admitted > 0 then
    at, key = first, firstKey
    for i = 1, buckets * 4, 4 do
      local algorithm, cost, a = ask[at], ask[at + COST], before[i]
      key = key + ask[at + MARKERS]
      local units = a < 0 and 0 or min(admitted, before[i + 2]) * cost
      if cost == 0 and before[i + 2] > 0 and not before[i + 3] then units = 1 end
      if units > 0 then
        local window = ask[at + WINDOW]
        local more = units * unit(algorithm, window)
        write(algorithm, key, window, ask[at + LIMIT], a + more, before[i + 1], more, ask[leases + place])
        if cost == 0 then use(key + 1, window) end
      end
      at, key = at + 6, key + (cost == 0 and 2 or 1)
    end
  end
end
return '[' .. table.concat(reply, ',', 1, said) .. ']'
`);
