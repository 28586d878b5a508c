/**
 * Redis scripts for changes by operators and bans by policies.
 *
 * Each change gets a version number. Twice a second, each process reads this number, and reads changes only if the
 * number is new. Version numbers come from the store's time, so none is used twice, even after the key has expired. The
 * store keeps a list of the newest changes. If the list has the version that a process knows, the process gets the
 * later changes.
 *
 * Otherwise the store may have lost data, completely or in a failover. Then the process writes back what it knows, and
 * reads everything. Bans, lifted bans and shadow modes carry the version of their change, and for each client or bucket
 * the later change wins. So a process that does not know yet that a ban was lifted cannot restore the ban. All keys
 * expire: the keys of bans and shadow modes with the last of them, the others after the time of the longest ban.
 */
import { READ_LUA } from '#gateway/limiter/script.ts';
import { storeScript } from '#gateway/store/connection.ts';
import { BAN_MS_MAX, BANS_MAX, LIFTED_MAX, POLICY_BAN_MS_MAX, POLICY_BANS_MAX } from './bans.ts';
import { SHADOW_CHANGES_MAX, SHADOWS_MAX } from './shadows.ts';

export const VERSION_KEY = 'fg:{control}:version';
/** Sorted set of digests by the end of the ban. */
export const BANS_KEY = 'fg:{control}:bans';
/** Hash of notes by digest. A note has the reason of a ban and the policy that made it, see `noteOf`. */
export const REASONS_KEY = 'fg:{control}:ban-reasons';
/** Sorted set of digests by the version of the ban. */
const BAN_ORDER_KEY = 'fg:{control}:ban-order';
/** Sorted set of digests by the version in which their ban was lifted. */
const LIFTED_KEY = 'fg:{control}:lifted';
/** Scripts that change bans get these keys first. */
export const BAN_KEYS = [VERSION_KEY, BANS_KEY, REASONS_KEY, BAN_ORDER_KEY, LIFTED_KEY] as const;
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
/**
 * Sorted set of changes by version. The text of a change is its version and `ban DIGEST`, `cleared DIGEST`, `shadows`
 * or `restored`.
 */
export const CHANGES_KEY = 'fg:{control}:changes';
/** Maximum length of the list of changes. It has room for one change for each possible ban. */
export const CHANGES_MAX = BANS_MAX;

/** Sorted set of buckets by the end of their shadow mode. */
export const SHADOWS_KEY = 'fg:{control}:shadows';
/** Sorted set of buckets by the version of their last change, also of shadows that have ended. */
export const SHADOW_ORDER_KEY = 'fg:{control}:shadow-order';
/** Keys of scripts that change shadows. */
export const SHADOW_KEYS = [VERSION_KEY, SHADOWS_KEY, SHADOW_ORDER_KEY, CHANGES_KEY] as const;

const NOW = `
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
`;
const VERSION_MS = BAN_MS_MAX + 86_400_000;
/** Lua functions that make a new version. They expect the version in the first key and the changes in the last key. */
const BUMP = `
local function set_version(version, change)
  redis.call('SET', KEYS[1], version, 'PX', ${VERSION_MS})
  local changes = KEYS[#KEYS]
  redis.call('ZADD', changes, version, version .. ' ' .. change)
  redis.call('ZREMRANGEBYRANK', changes, 0, ${-CHANGES_MAX - 1})
  redis.call('PEXPIRE', changes, ${VERSION_MS})
end
local function bump(change)
  local version = math.max(tonumber(redis.call('GET', KEYS[1]) or 0) + 1, time[1] * 1000000 + time[2])
  version = string.format('%.0f', version)
  set_version(version, change)
  return version
end
`;

/** Lua function that changes a shadow mode. `ms` is 0 if an operator has ended it. */
const SET_SHADOW = `
local function set_shadow(shadows, order, bucket, ms, version)
  if ms > 0 then redis.call('ZADD', shadows, string.format('%.0f', now + ms), bucket)
  else redis.call('ZREM', shadows, bucket) end
  redis.call('ZADD', order, version, bucket)
  redis.call('ZREMRANGEBYRANK', order, 0, ${-SHADOW_CHANGES_MAX - 1})
  redis.call('PEXPIRE', order, ${VERSION_MS})
  local last = redis.call('ZRANGE', shadows, -1, -1, 'WITHSCORES')[2]
  if last then redis.call('PEXPIREAT', shadows, string.format('%.0f', tonumber(last) + 1000)) end
end
`;

/** Lua functions that remove bans. They expect the keys bans, reasons, order and lifted bans at positions 2 to 5. */
const DROP_BANS = `
local function drop_ban(digest)
  redis.call('ZREM', KEYS[2], digest)
  redis.call('HDEL', KEYS[3], digest)
  redis.call('ZREM', KEYS[4], digest)
end
local function drop_ended()
  for _, digest in ipairs(redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', now)) do drop_ban(digest) end
end
local function lift_ban(digest, version)
  drop_ban(digest)
  redis.call('ZADD', KEYS[5], version, digest)
  redis.call('ZREMRANGEBYRANK', KEYS[5], 0, ${-LIFTED_MAX - 1})
  redis.call('PEXPIRE', KEYS[5], ${VERSION_MS})
end
`;

/**
 * Lua functions that add bans. They expect the keys version, bans, reasons, order and lifted bans at positions 1 to 5.
 */
const ADD_BAN = `${NOW}${BUMP}${DROP_BANS}
local function set_ban(digest, ms, reason, version)
  redis.call('ZADD', KEYS[2], string.format('%.0f', now + ms), digest)
  redis.call('HSET', KEYS[3], digest, reason)
  redis.call('ZADD', KEYS[4], version, digest)
  redis.call('ZREM', KEYS[5], digest)
end
local function expire_with_last()
  local last = redis.call('ZRANGE', KEYS[2], -1, -1, 'WITHSCORES')[2]
  if not last then return end
  for i = 2, 4 do redis.call('PEXPIREAT', KEYS[i], string.format('%.0f', tonumber(last) + 1000)) end
end
local function add_ban(digest, ms, reason, max)
  drop_ended()
  if not redis.call('ZSCORE', KEYS[2], digest) and redis.call('ZCARD', KEYS[2]) >= max then return nil end
  local version = bump('ban ' .. digest)
  set_ban(digest, ms, reason, version)
  expire_with_last()
  return version
end
`;

/**
 * Bans a client.
 *
 * KEYS version, bans, reasons, order, lifted bans, changes; ARGV digest, length in ms, reason. Returns the end of the
 * ban (0: there are too many bans) and its version.
 */
export const BAN = storeScript(`${ADD_BAN}
local version = add_ban(ARGV[1], ARGV[2], ARGV[3], ${BANS_MAX})
return { version and now + ARGV[2] or 0, version or '' }
`);

/**
 * Counts denials of a client by a policy, and bans the client when there are enough. It does not replace a longer ban,
 * or a ban by an operator.
 *
 * KEYS version, bans, reasons, order, lifted bans, denials, order and ends of past bans, changes; ARGV digest, number
 * of new denials, number of denials that cause a ban, time in ms within which they count, length of the ban in ms, 1 if
 * each ban is longer than the previous one, reason (empty in shadow mode, which only counts), name of the client and
 * policy among past bans. Returns the length of the ban in ms (0: there are not enough denials; -1: there are too many
 * bans).
 */
export const COUNT_DENIALS = storeScript(`${ADD_BAN}
local ends, times = string.match(redis.call('HGET', KEYS[8], ARGV[8]) or '0 0', '(%d+) (%d+)')
if tonumber(ends) > now then return 0 end
local count = redis.call('INCRBY', KEYS[6], ARGV[2])
if count == tonumber(ARGV[2]) then redis.call('PEXPIRE', KEYS[6], ARGV[4]) end
if count < tonumber(ARGV[3]) then return 0 end
-- Only bans that grow depend on earlier ones.
times = ARGV[6] == '1' and now < ends + ${POLICY_BAN_MS_MAX} and tonumber(times) or 0
local ms = math.min(ARGV[5] * 2 ^ times, ${POLICY_BAN_MS_MAX})
local known = tonumber(redis.call('ZSCORE', KEYS[2], ARGV[1]) or 0)
local note = redis.call('HGET', KEYS[3], ARGV[1]) or ''
local isByPolicy = (string.find(note, '\\n', 1, true) or 0) > 1
local isLonger = known <= now or (isByPolicy and known < now + ms)
if ARGV[7] ~= '' and isLonger and not add_ban(ARGV[1], ms, ARGV[7], ${POLICY_BANS_MAX}) then return -1 end
redis.call('DEL', KEYS[6])
redis.call('HSET', KEYS[8], ARGV[8], string.format('%.0f %d', now + ms, times + 1))
redis.call('ZADD', KEYS[7], string.format('%.0f', time[1] * 1000000 + time[2]), ARGV[8])
if redis.call('ZCARD', KEYS[7]) > ${PAST_BANS_MAX} then
  redis.call('HDEL', KEYS[8], redis.call('ZPOPMIN', KEYS[7])[1])
end
for i = 7, 8 do redis.call('PEXPIRE', KEYS[i], ${PAST_BANS_MS}) end
return ms
`);

/**
 * Writes back what a process knows after the store has lost data. For each client and bucket the later change wins.
 *
 * KEYS version, bans, reasons, order, lifted bans, shadows, their order, changes; ARGV known version, number of changes of
 * bans, then for each of them digest, remaining ms (0: lifted), version and reason, then for each change of a shadow mode
 * bucket, remaining ms (0: ended) and version.
 */
export const RESTORE = storeScript(`${ADD_BAN}${SET_SHADOW}
local version = tonumber(redis.call('GET', KEYS[1]) or 0)
local is_older = version < tonumber(ARGV[1])
local is_changed = is_older
drop_ended()
local bans = 2 + ARGV[2] * 4
local count = redis.call('ZCARD', KEYS[2])
for i = 3, bans, 4 do
  local digest, ms, made = ARGV[i], tonumber(ARGV[i + 1]), ARGV[i + 2]
  -- An empty store is filled quickly, because nothing else can use it meanwhile.
  local banned = version > 0 and redis.call('ZSCORE', KEYS[4], digest)
  local known = banned or (version > 0 and redis.call('ZSCORE', KEYS[5], digest)) or -1
  if tonumber(made) > tonumber(known) and (ms == 0 or banned or count < ${BANS_MAX}) then
    if ms == 0 then lift_ban(digest, made) else set_ban(digest, ms, ARGV[i + 3], made) end
    if ms > 0 and not banned then count = count + 1 end
    is_changed = true
  end
end
expire_with_last()
for i = bans + 1, #ARGV, 3 do
  local bucket, ms, made = ARGV[i], tonumber(ARGV[i + 1]), ARGV[i + 2]
  local known = redis.call('ZSCORE', KEYS[7], bucket) or -1
  if tonumber(made) > tonumber(known) and (ms == 0 or redis.call('ZCARD', KEYS[6]) < ${SHADOWS_MAX}) then
    set_shadow(KEYS[6], KEYS[7], bucket, ms, made)
    is_changed = true
  end
end
-- Processes that know the same have nothing to read.
if version == 0 and is_older then set_version(ARGV[1], 'restored') elseif is_changed then bump('restored') end
return 1
`);

/**
 * Lifts a ban. The store records this even if it does not have the ban, because a process might restore the ban later.
 *
 * KEYS version, bans, reasons, order, lifted bans, changes; ARGV digest. Returns 1 if there was a ban, and the version.
 */
export const UNBAN = storeScript(`${NOW}${BUMP}${DROP_BANS}
local ends = tonumber(redis.call('ZSCORE', KEYS[2], ARGV[1]) or 0)
local version = bump('ban ' .. ARGV[1])
lift_ban(ARGV[1], version)
return { ends > now and 1 or 0, version }
`);

/**
 * Lists bans, newest first.
 *
 * KEYS version, bans, reasons, order, lifted bans; ARGV maximum number of bans. Returns the number of all bans, then
 * digest, end and reason of each listed ban.
 */
export const LIST_BANS = storeScript(`${NOW}${DROP_BANS}
drop_ended()
local reply = { redis.call('ZCARD', KEYS[2]) }
for _, digest in ipairs(redis.call('ZREVRANGE', KEYS[4], 0, ARGV[1] - 1)) do
  reply[#reply + 1] = digest
  reply[#reply + 1] = redis.call('ZSCORE', KEYS[2], digest) or 0
  reply[#reply + 1] = redis.call('HGET', KEYS[3], digest) or ''
end
return reply
`);

/** Finds a ban. KEYS bans, reasons; ARGV digest. Returns the end of the ban (0: there is none) and the reason. */
export const BAN_OF = storeScript(`${NOW}
local ends = tonumber(redis.call('ZSCORE', KEYS[1], ARGV[1]) or 0)
if ends <= now then return { 0, '' } end
return { ends, redis.call('HGET', KEYS[2], ARGV[1]) or '' }
`);

/**
/**
 * Puts the policies of a bucket in shadow mode.
 *
 * KEYS version, shadows, their order, changes; ARGV bucket, length in ms. Returns the end (0: too many buckets are in
 * shadow mode) and the version of the change.
 */
export const SHADOW = storeScript(`${NOW}${BUMP}${SET_SHADOW}
redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', string.format('%.0f', now))
if not redis.call('ZSCORE', KEYS[2], ARGV[1]) and redis.call('ZCARD', KEYS[2]) >= ${SHADOWS_MAX} then
  return { 0, '' }
end
local version = bump('shadows')
set_shadow(KEYS[2], KEYS[3], ARGV[1], tonumber(ARGV[2]), version)
return { now + ARGV[2], version }
`);

/**
 * Ends shadow mode. The end is also recorded if the store does not know the shadow mode, because a process may restore it
 * later.
 *
 * KEYS version, shadows, their order, changes; ARGV bucket. Returns 1 if the bucket was in shadow mode, and the version.
 */
export const UNSHADOW = storeScript(`${NOW}${BUMP}${SET_SHADOW}
local ends = tonumber(redis.call('ZSCORE', KEYS[2], ARGV[1]) or 0)
local version = bump('shadows')
set_shadow(KEYS[2], KEYS[3], ARGV[1], 0, version)
return { ends > now and 1 or 0, version }
`);

/** Lists shadow modes. KEYS shadows. Returns alternating buckets and ends. */
export const SHADOWED = storeScript(`${NOW}
return redis.call('ZRANGEBYSCORE', KEYS[1], '(' .. string.format('%.0f', now), '+inf', 'WITHSCORES')
`);

/** Tells all processes that the counters of an identity were cleared. KEYS version, changes; ARGV digest. */
export const NOTE_RESET = storeScript(`${NOW}${BUMP}
bump('cleared ' .. ARGV[1])
`);

/**
 * Reads the changes since the version that a process knows.
 *
 * KEYS version, bans, reasons, order, lifted bans, shadows, their order, changes; ARGV known version (0: none). Returns
 * the current version (0: there is none). If it differs from the known version, the script also returns the time, and one
 * of:
 *
 * - `lost`: the list of changes does not have the known version.
 * - `changed` or `all`, then seven lists: digests and ends of bans, digests and reasons, digests and versions of bans,
 *   digests and versions of lifted bans, buckets in shadow mode and their ends, buckets and versions of changes of shadow
 *   modes (both null if unchanged), and the digests whose counters were cleared.
 */
export const READ_CHANGES = storeScript(`
local version = redis.call('GET', KEYS[1]) or '0'
if version == ARGV[1] then return { version } end
${NOW}
local function active(key)
  return redis.call('ZRANGEBYSCORE', key, '(' .. string.format('%.0f', now), '+inf', 'WITHSCORES')
end
local function all(key)
  return redis.call('ZRANGE', key, 0, -1, 'WITHSCORES')
end
local function everything()
  return {
    version, now, 'all', active(KEYS[2]), redis.call('HGETALL', KEYS[3]), all(KEYS[4]), all(KEYS[5]),
    active(KEYS[6]), all(KEYS[7]), {}
  }
end
if ARGV[1] == '0' then return everything() end
local newest = redis.call('ZRANGE', KEYS[8], -1, -1, 'WITHSCORES')[2]
local is_listed = redis.call('ZCOUNT', KEYS[8], ARGV[1], ARGV[1]) > 0 and tonumber(newest) == tonumber(version)
if not is_listed then return { version, now, 'lost' } end
local bans, reasons, versions, lifted, cleared, shadows, seen = {}, {}, {}, {}, {}, false, {}
local function add(list, digest, value)
  list[#list + 1], list[#list + 2] = digest, value
end
for _, change in ipairs(redis.call('ZRANGEBYSCORE', KEYS[8], '(' .. ARGV[1], '+inf')) do
  local kind, digest = string.match(change, '^%d+ (%a+) ?(.*)$')
  if kind == 'restored' then return everything() end
  if kind == 'shadows' then shadows = true end
  if kind == 'cleared' then cleared[#cleared + 1] = digest end
  if kind == 'ban' and not seen[digest] then
    seen[digest] = true
    local ends = redis.call('ZSCORE', KEYS[2], digest)
    if ends then
      add(bans, digest, ends)
      add(reasons, digest, redis.call('HGET', KEYS[3], digest) or '')
      add(versions, digest, redis.call('ZSCORE', KEYS[4], digest) or 0)
    else
      -- A ban that has ended has no version any more.
      add(lifted, digest, redis.call('ZSCORE', KEYS[5], digest) or 0)
    end
  end
end
return { version, now, 'changed', bans, reasons, versions, lifted,
  shadows and active(KEYS[6]), shadows and all(KEYS[7]), cleared }
`);

/**
 * Reads the counters of one identity, and whether it is proven.
 *
 * KEYS proof marker, then counters of the same identity; ARGV a JSON list with algorithm, window and limit of each
 * counter. Returns the time, the remaining ms of the marker (PTTL), and the two numbers of each counter.
 */
export const LOOK = storeScript(`${READ_LUA}
local list = cjson.decode(ARGV[1])
local reply = { string.format('%.0f', now), redis.call('PTTL', KEYS[1]) }
for i = 2, #KEYS do
  local a, b = read(list[i * 3 - 5], i, list[i * 3 - 4], list[i * 3 - 3])
  reply[i * 2 - 1], reply[i * 2] = string.format('%.0f', a), string.format('%.0f', b)
end
return reply
`);

/** Deletes counters. KEYS the counters of one identity. */
export const CLEAR = storeScript(`return redis.call('DEL', unpack(KEYS))`);

/** Lists the names of live processes. KEYS the replicas. */
export const REPLICAS = storeScript(`return redis.call('ZRANGE', KEYS[1], 0, -1)`);

/** Reads the salt. KEYS the salt. */
export const SALT = storeScript(`return redis.call('GET', KEYS[1])`);
