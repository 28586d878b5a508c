/**
 * The script that decides charges. It decides a list of charges in one atomic step, in order, each after the ones
 * before it. It reads all counters of a charge first, and then charges all of them, or none: a denied request writes
 * nothing.
 *
 * KEYS: the counters of the adjustments. Then, for each charge, the counters of its buckets. A bucket that is charged
 * only for unproven credentials has their proof markers before it.
 *
 * ARGV: one JSON array with the lengths of three lists, and the lists. Each rule has the algorithm's id, limit,
 * capacity (negative if the policy never denies) and window. Each adjustment has its rule (counted from 1), its amount, and the
 * time of its charge. Each charge has the number of requests, the number of buckets, and for each bucket its rule and its
 * cost. If the bucket has proof markers, its rule is negative, and their number follows. If any charge takes leases, the
 * name of the leases of each charge follows. The text of a value can stand instead of a
 * cost or an amount (algorithms/distinct.ts).
 *
 * Reply: one JSON array of numbers. It begins with the time in seconds and microseconds. Each charge has the number of
 * admitted requests (-1: all), and for each bucket the two numbers of its counter before. If a credential is proven,
 * nothing is charged for that bucket. Then its first number is -1, or -2 if the proof was also reported in this hour, and
 * its second number is the place of the credential's marker, from 0. If different values are exhausted, a short list of
 * them stands instead of the second number.
 *
 * All numbers are in one flat array because Redis spends time on each argument, each element of a reply and each table,
 * and parses JSON in C. Converting a number to text uses printf, so the most common ones stay texts.
 */

import type { AlgorithmLua } from '#gateway/algorithms/algorithm.ts';
import { ALGORITHMS } from '#gateway/algorithms/table.ts';
import { storeScript } from '#gateway/store/connection.ts';

/** Value of a proof marker: the hour in which it was set. Redis shares one object for each number below 10,000. */
export const HOUR_LUA = 'math.floor(time[1] / 3600) % 10000';

/** Returns Lua code that calls the function of the counter's algorithm. */
function luaOf(name: keyof AlgorithmLua, parameters: string): string {
  const branches = Object.values(ALGORITHMS).map(
    ({ id, lua }) => `if algorithm == ${id} then\n${lua[name]}\n`,
  );
  return `local function ${name}(algorithm, ${parameters})\n${branches.join('else')}end\nend`;
}

/**
 * Lua: reads counters, by their index in KEYS. Scripts that only read use it too. One MGET reads all texts; values that
 * the script has written since are in `fresh`.
 */
export const READ_LUA = `
local call, pcall, floor, ceil, abs, max, min = redis.call, redis.pcall, math.floor, math.ceil, math.abs, math.max, math.min
local match, format, keys = string.match, string.format, KEYS
local time = call('TIME')
local now = time[1] * 1000 + floor(time[2] / 1000)
local values, fresh, value = call('MGET', unpack(keys)), {}

local function get(at)
  return fresh[keys[at]] or values[at] or ''
end
local function proof(at)
  local hour = get(at)
  if hour == '' then return 0 end
  return tonumber(hour) == ${HOUR_LUA} and -2 or -1
end
-- Returns the first proof among several markers, and its place from 0.
local function proven(at, markers)
  for place = 0, markers - 1 do
    local found = proof(at + place)
    if found < 0 then return found, place end
  end
  return 0, 0
end
${luaOf('read', 'at, window, limit')}
local function text(number)
  if number == 0 then return '0' end
  return number < 1e14 and number or format('%.0f', number)
end
`;

export const SPEND = storeScript(`${READ_LUA}
local function put(at, value, ttl)
  fresh[keys[at]] = value
  call('SET', keys[at], value, 'PX', ttl)
end
${luaOf('room', 'window, a, b, capacity, asking, at')}
${luaOf('added', 'window, b, times')}
${luaOf('write', 'at, window, limit, a, b, added, lease')}
${luaOf('adjust', 'window, limit, a, b, amount, moment')}

-- A rule has four numbers; the first is the algorithm. A bucket has two or three; the first is its rule.
local RULE, LIMIT, CAPACITY, WINDOW, COST, MARKERS = 4, 1, 2, 3, 1, 2
local ask, key = cjson.decode(ARGV[1]), 1
local charges = 3 + ask[1] + ask[2]
local leases = charges + ask[3]

for i = 4 + ask[1], charges, 3 do
  local rule = ask[i] * RULE
  local algorithm, limit, window = ask[rule], ask[rule + LIMIT], ask[rule + WINDOW]
  value = ask[i + 1]
  local a, b = read(algorithm, key, window, limit)
  local nextA, nextB = adjust(algorithm, window, limit, a, b, ask[i + 1], ask[i + 2])
  if nextA ~= a or nextB ~= b then
    if nextA + nextB > 0 then write(algorithm, key, window, limit, nextA, nextB, nextA - a) else
      fresh[keys[key]] = ''
      call('DEL', keys[key])
    end
  end
  key = key + 1
end

local reply, said, at, place = { time[1], time[2], 0, 0, 0 }, 2, charges + 1, 0
local before = { 0, 0, 0, 0, 0, 0 }
while at <= leases do
  local asking, buckets = ask[at], ask[at + 1]
  local first, firstKey, head, admitted = at + 2, key, said + 1, asking
  at, said, place = first, head, place + 1
  for i = 1, buckets * 3, 3 do
    local rule, a, b, size, list = ask[at] * RULE, 0, 0, 2
    value = ask[at + COST]
    if rule < 0 then
      local markers = ask[at + MARKERS]
      rule, a, b = -rule, proven(key, markers)
      key, size = key + markers, 3
    end
    if a == 0 then
      local algorithm, capacity, window = ask[rule], ask[rule + CAPACITY], ask[rule + WINDOW]
      a, b = read(algorithm, key, window, ask[rule + LIMIT])
      local fit, instead = room(algorithm, window, a, b, abs(capacity), asking, key)
      if fit < admitted and capacity > 0 then admitted = max(0, fit) end
      before[i + 2], list = fit, instead
    end
    before[i], before[i + 1] = a, b
    reply[said + 1], reply[said + 2] = text(a), list or text(b)
    at, key, said = at + size, key + 1, said + 2
  end
  reply[head] = admitted == asking and '-1' or text(admitted)
  if admitted > 0 then
    at, key = first, firstKey
    for i = 1, buckets * 3, 3 do
      local rule, a, size = ask[at] * RULE, before[i], 2
      if rule < 0 then rule, key, size = -rule, key + ask[at + MARKERS], 3 end
      local times = a < 0 and 0 or min(admitted, before[i + 2])
      if times > 0 then
        local algorithm, window = ask[rule], ask[rule + WINDOW]
        value = ask[at + COST]
        local more = added(algorithm, window, before[i + 1], times)
        if more > 0 then
          write(algorithm, key, window, ask[rule + LIMIT], a + more, before[i + 1], more, ask[leases + place])
        end
      end
      at, key = at + size, key + 1
    end
  end
end
return '[' .. table.concat(reply, ',', 1, said) .. ']'
`);
