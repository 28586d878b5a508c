/**
 * The script that decides charges. It decides a list of charges in one atomic step, in order, each after the ones
 * before it. It reads all counters of a charge first, and then charges all of them, or none: a denied request writes
 * nothing.
 *
 * KEYS: the counters of the adjustments. Then, for each charge, the counters of its buckets. A bucket that is charged
 * only for an unproven credential has the proof marker of the credential before it.
 *
 * ARGV: one JSON array with the lengths of three lists, and the lists. Each rule has the algorithm's id, limit,
 * capacity (negative in shadow mode) and window. Each adjustment has its rule (counted from 1), its amount, and the
 * time of its charge. Each charge has the number of requests, the number of buckets, and for each bucket its rule
 * (negative if the credential may be unproven) and its cost. If any charge takes leases, the name of the leases of each
 * charge follows.
 *
 * Reply: one JSON array of numbers. It begins with the time in seconds and microseconds. Each charge has the number of
 * admitted requests (-1: all), and for each bucket the two numbers of its counter before. If the credential is proven,
 * nothing is charged for that bucket, and its first number is -1, or -2 if the proof was also reported in this hour.
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
local values, fresh = call('MGET', unpack(keys)), {}

local function get(at)
  return fresh[keys[at]] or values[at] or ''
end
local function proof(at)
  local hour = get(at)
  if hour == '' then return 0 end
  return tonumber(hour) == ${HOUR_LUA} and -2 or -1
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
${luaOf('used', 'window, a, b')}
${luaOf('write', 'at, window, limit, a, b, added, lease')}
${luaOf('adjust', 'window, limit, a, b, amount, moment')}

local ask, key = cjson.decode(ARGV[1]), 1
local charges = 3 + ask[1] + ask[2]
local leases = charges + ask[3]

for i = 4 + ask[1], charges, 3 do
  local rule = ask[i] * 4
  local algorithm, limit, window = ask[rule], ask[rule + 1], ask[rule + 3]
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
    local rule, a, b = ask[at] * 4, 0, 0
    if rule < 0 then
      rule, a = -rule, proof(key)
      key = key + 1
    end
    if a == 0 then
      local algorithm, capacity, window = ask[rule], ask[rule + 2], ask[rule + 3]
      a, b = read(algorithm, key, window, ask[rule + 1])
      local room = floor((abs(capacity) - used(algorithm, window, a, b)) / ask[at + 1])
      if room < admitted and capacity > 0 then admitted = max(0, room) end
      before[i + 2] = room
    end
    before[i], before[i + 1] = a, b
    reply[said + 1], reply[said + 2] = text(a), text(b)
    at, key, said = at + 2, key + 1, said + 2
  end
  reply[head] = admitted == asking and '-1' or text(admitted)
  if admitted > 0 then
    at, key = first, firstKey
    for i = 1, buckets * 3, 3 do
      local rule, a = ask[at] * 4, before[i]
      if rule < 0 then rule, key = -rule, key + 1 end
      local times = a < 0 and 0 or min(admitted, before[i + 2])
      if times > 0 then
        local algorithm, window, added = ask[rule], ask[rule + 3], times * ask[at + 1]
        if algorithm == ${ALGORITHMS['token-bucket'].id} then added = added * window end
        write(algorithm, key, window, ask[rule + 1], a + added, before[i + 1], added, ask[leases + place])
      end
      at, key = at + 2, key + 1
    end
  end
end
return '[' .. table.concat(reply, ',', 1, said) .. ']'
`);
