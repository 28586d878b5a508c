/**
 * The one script. It decides a list of charges in one atomic step, each in order against what those before it left. It
 * looks at all counters of a charge first, and then charges all of them, or none: a denied request writes nothing.
 *
 * KEYS  the counters of the adjustments; then, charge by charge, each bucket's counter, with the credential's proof marker
 *       before it where the bucket is charged only for an unproven credential
 * ARGV  one JSON text: [rules, adjustments, charges, leases]. Rules: the algorithm's id, limit, capacity (negative in shadow),
 *       window in ms. Adjustments: rule (counted from 1), amount, when it was charged. Charges: how many ask, how many buckets,
 *       and of each bucket its rule (negative: the proof marker is looked at) and its cost. Leases, if any: charge by charge the
 *       name of the leases that it takes
 * reply one JSON array of numbers: now in ms; then, charge by charge, how many are admitted, and of each bucket the two
 *       numbers that its counter held before, the first -1 if the credential is proven, so that nothing is charged here
 *
 * Numbers travel as one text because Redis pays for each argument and each element of a reply, and parses JSON in C.
 */
import { storeScript } from '#gateway/store/connection.ts';
import type { AlgorithmLua } from './algorithms/algorithm.ts';
import { ALGORITHMS } from './algorithms/table.ts';

/** The function of whatever algorithm. */
function luaOf(name: keyof AlgorithmLua, parameters: string): string {
  const branches = Object.values(ALGORITHMS).map(
    ({ id, lua }) => `if algorithm == ${id} then\n${lua[name]}\n`,
  );
  return `local function ${name}(algorithm, ${parameters})\n${branches.join('else')}end\nend`;
}

/** Reads counters. Scripts that only look begin with it as well. */
export const READ_LUA = `
local call, pcall, floor, ceil, abs, max, min = redis.call, redis.pcall, math.floor, math.ceil, math.abs, math.max, math.min
local match, format = string.match, string.format
local time = call('TIME')
local now = time[1] * 1000 + floor(time[2] / 1000)

local function get(key)
  local value = pcall('GET', key)
  return type(value) == 'string' and value or ''
end
${luaOf('read', 'key, window, limit')}
local function text(number)
  return number < 1e14 and number or format('%.0f', number)
end
`;

export const SPEND = storeScript(`${READ_LUA}
${luaOf('used', 'window, a, b')}
${luaOf('write', 'key, window, limit, a, b, added, lease')}
${luaOf('adjust', 'window, limit, a, b, amount, moment')}

local ask = cjson.decode(ARGV[1])
local rules, adjustments, charges, leases = ask[1], ask[2], ask[3], ask[4]
local key = 1

for i = 1, #adjustments, 3 do
  local rule = adjustments[i] * 4 - 3
  local algorithm, limit, window = rules[rule], rules[rule + 1], rules[rule + 3]
  local a, b = read(algorithm, KEYS[key], window, limit)
  local nextA, nextB = adjust(algorithm, window, limit, a, b, adjustments[i + 1], adjustments[i + 2])
  if nextA ~= a or nextB ~= b then
    if nextA + nextB == 0 then call('DEL', KEYS[key])
    else write(algorithm, KEYS[key], window, limit, nextA, nextB, nextA - a) end
  end
  key = key + 1
end

local reply, said, at, place = { now }, 1, 1, 0
local as, bs, room = {}, {}, {}
while charges[at] do
  local admitted, buckets = charges[at], charges[at + 1]
  local first, firstKey, head = at + 2, key, said + 1
  at, said, place = first, head, place + 1
  for i = 1, buckets do
    local rule, cost, a, b = charges[at], charges[at + 1], -1, 0
    local isProven = false
    if rule < 0 then
      rule, isProven = -rule, call('PTTL', KEYS[key]) >= 0
      key = key + 1
    end
    if not isProven then
      rule = rule * 4 - 3
      local algorithm, capacity, window = rules[rule], rules[rule + 2], rules[rule + 3]
      a, b = read(algorithm, KEYS[key], window, rules[rule + 1])
      room[i] = floor((abs(capacity) - used(algorithm, window, a, b)) / cost)
      if capacity > 0 then admitted = max(0, min(admitted, room[i])) end
    end
    as[i], bs[i] = a, b
    reply[said + 1], reply[said + 2] = text(a), b
    at, key, said = at + 2, key + 1, said + 2
  end
  reply[head] = admitted
  if admitted > 0 then
    local here = firstKey
    for i = 1, buckets do
      local rule, cost = charges[first + i * 2 - 2], charges[first + i * 2 - 1]
      if rule < 0 then rule, here = -rule, here + 1 end
      local times = as[i] < 0 and 0 or min(admitted, room[i])
      if times > 0 then
        rule = rule * 4 - 3
        local algorithm, window, added = rules[rule], rules[rule + 3], times * cost
        if algorithm == ${ALGORITHMS['token-bucket'].id} then added = added * window end
        write(algorithm, KEYS[here], window, rules[rule + 1], as[i] + added, bs[i], added, leases and leases[place])
      end
      here = here + 1
    end
  end
end
return '[' .. table.concat(reply, ',') .. ']'
`);
