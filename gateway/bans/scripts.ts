/**
 * Redis scripts for changes by operators and bans by policies.
 *
 * A ban or a shadow mode is one key that expires at its end, and an entry in a sorted set, whose score is the version of
 * the change that made it. Versions come from the store's time and only grow. Twice a second, each process asks for the
 * newest version, and reads the entries with a version that it has not heard of, and the names of what was removed since.
 *
 * The store and each process keep the numbers of the newest versions of which they have heard. If the store has not heard
 * of one of which a process has, it has lost data, completely or in a failover. Then this process writes back what the
 * store has not heard of, see WRITE_BACK. That needs no list of lifted bans: a process that has heard of the version of a
 * ban, and does not have it, knows that it was lifted.
 */
import { READ_LUA } from '#gateway/limiter/script.ts';
import { storeScript } from '#gateway/store/connection.ts';
import { BAN_MS_MAX, BANS_MAX, POLICY_BAN_MS_MAX, POLICY_BANS_MAX } from './bans.ts';
import { SHADOWS_MAX } from './shadows.ts';

/** Sorted set with the numbers of the newest versions. The store has heard of all versions up to the first of them. */
export const VERSIONS_KEY = 'fg:{control}:versions';
export const VERSIONS_MAX = 100;
/** Sorted set of digests by the version of their ban. The ban of a digest has the key `entryKey`. */
export const BANS_KEY = 'fg:{control}:banned';
/** Sorted set of buckets by the version of their shadow mode. */
export const SHADOWS_KEY = 'fg:{control}:shadowed';
/**
 * Sorted set of what was removed lately, by version: `ban DIGEST`, `shadow BUCKET`, `counters DIGEST`, or `*` if the store
 * has lost data. Without it, each process would have to read all bans when one is lifted.
 */
export const GONE_KEY = 'fg:{control}:gone';
export const GONE_MAX = 1000;
/** All scripts that change something or read changes get these keys first. */
export const CONTROL_KEYS = [VERSIONS_KEY, BANS_KEY, SHADOWS_KEY, GONE_KEY] as const;
/** Key of one ban or shadow mode. Its text is the end, a space and the note. */
export const entryKey = (set: string, name: string): string => `${set}:${name}`;
/** Key that counts the denials of a client by a policy with `ban`. It expires after `within` of the policy. */
export const denialsKey = (digest: string, row: string): string => `fg:{control}:denials:${digest}:${row}`;
/**
 * Keys for current and past bans by policies, with an entry for each pair of client and policy. The sorted set has the
 * time of the last ban in microseconds. The hash has the end of that ban and the number of bans. Shadow mode has its
 * own keys, because it must not change the history of real bans.
 */
export const pastBansKeys = (isShadow: boolean): readonly [order: string, ends: string] => {
  const key = `fg:{control}:past-bans${isShadow ? '-shadow' : ''}`;
  return [`${key}-order`, key];
};
/**
 * Maximum number of pairs of client and policy whose bans are remembered. Beyond it, the pair with the oldest ban is
 * forgotten.
 */
export const PAST_BANS_MAX = 2 * POLICY_BANS_MAX;
/** Expiry of the keys for past bans: the longest ban, and the time for which it is remembered. */
const PAST_BANS_MS = 2 * POLICY_BAN_MS_MAX;

/** The versions are kept for longer than any ban. */
const KEPT_MS = BAN_MS_MAX + 86_400_000;
const NOW = `
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
`;
/** Lua functions that read bans and shadow modes. */
const READ_ENTRIES = `
-- Reads the texts of the names, in pages, because a call has a bounded number of arguments. Ended ones have none.
local function texts(set, names)
  local all = {}
  for from = 1, #names, 1000 do
    local keys = {}
    for i = from, math.min(#names, from + 999) do keys[#keys + 1] = set .. ':' .. names[i] end
    for _, text in ipairs(redis.call('MGET', unpack(keys))) do all[#all + 1] = text end
  end
  return all
end
-- Makes alternating names, versions and texts from names and versions.
local function entries(set, listed)
  local names, reply = {}, {}
  for i = 1, #listed, 2 do names[#names + 1] = listed[i] end
  for i, text in ipairs(texts(set, names)) do
    if text then
      reply[#reply + 1], reply[#reply + 2], reply[#reply + 3] = names[i], listed[2 * i], text
    end
  end
  return reply
end
local function sweep(set)
  local names = redis.call('ZRANGE', set, 0, -1)
  for i, text in ipairs(texts(set, names)) do
    if not text then redis.call('ZREM', set, names[i]) end
  end
end
`;
/** Lua functions that change bans and shadow modes. They expect CONTROL_KEYS. */
const CHANGE = `${NOW}${READ_ENTRIES}
local function bump()
  local newest = redis.call('ZRANGE', KEYS[1], -1, -1)[1]
  -- A new list has heard of no version before.
  if not newest then redis.call('ZADD', KEYS[1], 0, 0) end
  local version = math.max((newest or 0) + 1, time[1] * 1000000 + time[2])
  version = string.format('%.0f', version)
  redis.call('ZADD', KEYS[1], version, version)
  redis.call('ZREMRANGEBYRANK', KEYS[1], 0, ${-VERSIONS_MAX - 1})
  redis.call('PEXPIRE', KEYS[1], ${KEPT_MS})
  return version
end
local function put(set, name, ms, note, version)
  redis.call('SET', set .. ':' .. name, string.format('%.0f ', now + ms) .. note, 'PX', string.format('%.0f', ms))
  redis.call('ZADD', set, version, name)
  redis.call('PEXPIRE', set, ${KEPT_MS})
end
local function drop(set, name)
  redis.call('ZREM', set, name)
  return redis.call('DEL', set .. ':' .. name)
end
local function note_gone(what, version)
  redis.call('ZADD', KEYS[4], version, what)
  redis.call('ZREMRANGEBYRANK', KEYS[4], 0, ${-GONE_MAX - 1})
  redis.call('PEXPIRE', KEYS[4], ${KEPT_MS})
end
local function remove(set, kind, name)
  local version = bump()
  note_gone(kind .. ' ' .. name, version)
  return { drop(set, name), version }
end
local function has_room(set, name, max, sweep_every_ms)
  if redis.call('EXISTS', set .. ':' .. name) == 1 or redis.call('ZCARD', set) < max then return true end
  if sweep_every_ms == 0 or redis.call('SET', set .. '-swept', 1, 'NX', 'PX', sweep_every_ms) then sweep(set) end
  return redis.call('ZCARD', set) < max
end
local function add(set, name, ms, note, max, sweep_every_ms)
  if not has_room(set, name, max, sweep_every_ms) then return { 0, '' } end
  local version = bump()
  put(set, name, ms, note, version)
  return { string.format('%.0f', now + ms), version }
end
`;

/**
 * Bans a client.
 *
 * KEYS CONTROL_KEYS; ARGV digest, length in ms, note. Returns the end of the ban (0: there are too many bans) and its
 * version.
 */
export const BAN = storeScript(`${CHANGE}
return add(KEYS[2], ARGV[1], tonumber(ARGV[2]), ARGV[3], ${BANS_MAX}, 0)
`);

/**
 * Counts denials of a client by a policy, and bans the client when there are enough. It does not replace a longer ban,
 * or a ban by an operator.
 *
 * KEYS CONTROL_KEYS, denials, order and ends of past bans; ARGV digest, number of new denials, number of denials that
 * cause a ban, time in ms within which they count, length of the ban in ms, 1 if each ban is longer than the previous
 * one, note (empty in shadow mode, which only counts), name of the client and policy among past bans. Returns the length
 * of the ban in ms (0: there are not enough denials; -1: there are too many bans).
 */
export const COUNT_DENIALS = storeScript(`${CHANGE}
local ends, times = string.match(redis.call('HGET', KEYS[7], ARGV[8]) or '0 0', '(%d+) (%d+)')
if tonumber(ends) > now then return 0 end
local count = redis.call('INCRBY', KEYS[5], ARGV[2])
if count == tonumber(ARGV[2]) then redis.call('PEXPIRE', KEYS[5], ARGV[4]) end
if count < tonumber(ARGV[3]) then return 0 end
-- Only bans that grow depend on earlier ones.
times = ARGV[6] == '1' and now < ends + ${POLICY_BAN_MS_MAX} and tonumber(times) or 0
local ms = math.min(ARGV[5] * 2 ^ times, ${POLICY_BAN_MS_MAX})
local known, note = string.match(redis.call('GET', KEYS[2] .. ':' .. ARGV[1]) or '0 ', '^(%d+) (.*)$')
known = tonumber(known)
local isByPolicy = (string.find(note, '\\n', 1, true) or 0) > 1
local isLonger = known <= now or (isByPolicy and known < now + ms)
-- A flood of clients for whom there is no room must cost little.
if ARGV[7] ~= '' and isLonger and add(KEYS[2], ARGV[1], ms, ARGV[7], ${POLICY_BANS_MAX}, 1000)[2] == '' then
  return -1
end
redis.call('DEL', KEYS[5])
redis.call('HSET', KEYS[7], ARGV[8], string.format('%.0f %d', now + ms, times + 1))
redis.call('ZADD', KEYS[6], string.format('%.0f', time[1] * 1000000 + time[2]), ARGV[8])
if redis.call('ZCARD', KEYS[6]) > ${PAST_BANS_MAX} then
  redis.call('HDEL', KEYS[7], redis.call('ZPOPMIN', KEYS[6])[1])
end
for i = 6, 7 do redis.call('PEXPIRE', KEYS[i], ${PAST_BANS_MS}) end
return ms
`);

/**
 * Lifts a ban. Processes hear of it even if the store does not have the ban, because one of them may.
 *
 * KEYS CONTROL_KEYS; ARGV digest. Returns 1 if there was a ban, and the version.
 */
export const UNBAN = storeScript(`${CHANGE}
return remove(KEYS[2], 'ban', ARGV[1])
`);

/**
 * Lists bans, newest first.
 *
 * KEYS bans; ARGV maximum number of bans. Returns the number of all bans, then name, version and text of each listed ban.
 */
export const LIST_BANS = storeScript(`${READ_ENTRIES}
sweep(KEYS[1])
return {
  redis.call('ZCARD', KEYS[1]),
  entries(KEYS[1], redis.call('ZREVRANGE', KEYS[1], 0, ARGV[1] - 1, 'WITHSCORES')),
}
`);

/**
 * Puts the policies of a bucket in shadow mode.
 *
 * KEYS CONTROL_KEYS; ARGV bucket, length in ms. Returns the end (0: too many buckets are in shadow mode) and the version.
 */
export const SHADOW = storeScript(`${CHANGE}
return add(KEYS[3], ARGV[1], tonumber(ARGV[2]), '', ${SHADOWS_MAX}, 0)
`);

/** Ends shadow mode. KEYS CONTROL_KEYS; ARGV bucket. Returns 1 if the bucket was in shadow mode, and the version. */
export const UNSHADOW = storeScript(`${CHANGE}
return remove(KEYS[3], 'shadow', ARGV[1])
`);

/** Lists shadow modes. KEYS shadows. Returns alternating buckets, versions and texts. */
export const SHADOWED = storeScript(`${READ_ENTRIES}
return entries(KEYS[1], redis.call('ZRANGE', KEYS[1], 0, -1, 'WITHSCORES'))
`);

/** Tells all processes that the counters of an identity were cleared. KEYS CONTROL_KEYS; ARGV digest. */
export const NOTE_RESET = storeScript(`${CHANGE}
note_gone('counters ' .. ARGV[1], bump())
`);

/**
 * Reads what a process has not heard of.
 *
 * KEYS CONTROL_KEYS; ARGV newest version that the process has read (0: none), then versions of which it has heard
 * otherwise. Returns the newest version (0: there is none), and if the process has not heard of it, the time and one of:
 *
 * - `lost`: the store has not heard of a version of which the process has.
 * - `all` or `new`, then entries of bans and of shadow modes: all, or those of new versions; what was removed; and all
 *   versions that the store lists, or the new ones. After `all`, the process also forgets the counters that it knows.
 */
export const READ_CHANGES = storeScript(`
local ends = redis.call('ZRANGE', KEYS[1], 0, 0)
local newest = redis.call('ZRANGE', KEYS[1], -1, -1)[1] or '0'
for _, heard in ipairs(ARGV) do
  local is_known = heard == '0' or (ends[1] and tonumber(heard) < tonumber(ends[1]))
  if not is_known and not redis.call('ZSCORE', KEYS[1], heard) then return { newest, 0, 'lost' } end
end
if newest == ARGV[1] then return { newest } end
${NOW}${READ_ENTRIES}
local after = '(' .. ARGV[1]
local gone = redis.call('ZRANGEBYSCORE', KEYS[4], after, '+inf')
-- Of a full list, earlier ones may have been dropped.
local is_new = ARGV[1] ~= '0' and #gone < ${GONE_MAX}
for _, what in ipairs(gone) do is_new = is_new and what ~= '*' end
local function changed(set)
  return entries(set, redis.call('ZRANGEBYSCORE', set, is_new and after or '-inf', '+inf', 'WITHSCORES'))
end
return {
  newest, string.format('%.0f', now), is_new and 'new' or 'all', changed(KEYS[2]), changed(KEYS[3]), gone,
  redis.call('ZRANGEBYSCORE', KEYS[1], is_new and after or '-inf', '+inf'),
}
`);

/**
 * Writes back what a process knows and the store has lost. Of two that have heard of a change, none overrules the other:
 * an entry is put back if the store has not heard of its version, and removed if the process has heard of its version and
 * does not have it.
 *
 * KEYS CONTROL_KEYS; ARGV number of versions of which the process has heard, these versions, then of each entry the
 * position of its set in KEYS, name, remaining ms (0: an operator has just removed it), version and note.
 */
export const WRITE_BACK = storeScript(`${CHANGE}
local function hearing(versions)
  local first, is_heard = tonumber(versions[1] or -1), {}
  for _, version in ipairs(versions) do is_heard[tonumber(version)] = true end
  return function(version) return version <= first or is_heard[version] end
end
local known = { unpack(ARGV, 2, ARGV[1] + 1) }
local ours = redis.call('ZRANGE', KEYS[1], 0, -1)
local process_has_heard, store_has_heard = hearing(known), hearing(ours)
local mine, max = { {}, {}, {} }, { 0, ${BANS_MAX}, ${SHADOWS_MAX} }
for i = ARGV[1] + 2, #ARGV, 5 do
  local at, name, ms, version = tonumber(ARGV[i]), ARGV[i + 1], tonumber(ARGV[i + 2]), tonumber(ARGV[i + 3])
  local set = KEYS[at]
  local theirs = tonumber(redis.call('ZSCORE', set, name) or -1)
  local has_place = theirs >= 0 or redis.call('ZCARD', set) < max[at]
  if ms == 0 then
    if theirs < version then drop(set, name) end
  else
    mine[at][name] = true
    if theirs < version and has_place and not store_has_heard(version) then
      put(set, name, ms, ARGV[i + 4], ARGV[i + 3])
    end
  end
end
for at = 2, 3 do
  local theirs = redis.call('ZRANGE', KEYS[at], 0, -1, 'WITHSCORES')
  for i = 1, #theirs, 2 do
    if not mine[at][theirs[i]] and process_has_heard(tonumber(theirs[i + 1])) then drop(KEYS[at], theirs[i]) end
  end
end
for _, version in ipairs(known) do redis.call('ZADD', KEYS[1], version, version) end
-- Each has heard of all versions up to the first that it lists.
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', '(' .. string.format('%.0f', math.max(known[1], ours[1] or 0)))
local version = bump()
note_gone('*', version)
return 1
`);

/**
 * Reads the counters of one identity, and whether it is proven.
 *
 * KEYS proof marker, then counters of the same identity, then markers of values; ARGV a JSON list with algorithm, window,
 * limit and the place of the value's marker in KEYS, or 0, for each counter. Returns the time, the remaining ms of the
 * proof marker (PTTL), and for each counter its two numbers, and 1 if the value was used before.
 */
export const LOOK = storeScript(`${READ_LUA}
local list = cjson.decode(ARGV[1])
local reply = { string.format('%.0f', now), redis.call('PTTL', KEYS[1]) }
for at = 1, #list, 4 do
  local a, b = read(list[at], (at + 7) / 4, list[at + 1], list[at + 2])
  reply[#reply + 1], reply[#reply + 2] = format('%.0f', a), format('%.0f', b)
  reply[#reply + 1] = list[at + 3] > 0 and isUsed(list[at + 3]) and 1 or 0
end
return reply
`);

/** Deletes counters. KEYS the counters of one identity. */
export const CLEAR = storeScript(`return redis.call('DEL', unpack(KEYS))`);

/** Lists the names of live processes. KEYS the replicas. */
export const REPLICAS = storeScript(`return redis.call('ZRANGE', KEYS[1], 0, -1)`);

/** Reads a text, such as the salt or a ban. KEYS the text. */
export const READ = storeScript(`return redis.call('GET', KEYS[1])`);
