/**
 * Changes by operators and bans by policies, in the store.
 *
 * Each change gets a version number, so that processes ask for one short text twice a second, and for what has changed only
 * then. Versions are made of the store's time, so none is used twice, even after the key has expired. The newest changes
 * are kept in a list. If the version that a process knows is in the list, it gets the later ones; otherwise it reads all.
 *
 * The first version of an empty store is its incarnation. If a process sees another incarnation, the store has lost its
 * data. All keys expire: bans with the last of them, versions and changes after the longest ban.
 */
import { READ_LUA } from '#gateway/limiter/script.ts';
import { storeScript } from '#gateway/store/connection.ts';
import { BAN_MS_MAX, BANS_MAX, POLICY_BAN_MS_MAX, POLICY_BANS_MAX } from './bans.ts';
import { SHADOWS_MAX } from './shadows.ts';

export const VERSION_KEY = 'fg:{control}:version';
export const INCARNATION_KEY = 'fg:{control}:incarnation';
/** Sorted set of digests by the end of the ban. */
export const BANS_KEY = 'fg:{control}:bans';
/** Hash of reasons by digest, with the policy that made the ban, see `noteOf`. */
export const REASONS_KEY = 'fg:{control}:ban-reasons';
/** Sorted set of digests by the time of the ban in microseconds. */
export const BAN_ORDER_KEY = 'fg:{control}:ban-order';
/** First keys of scripts that change bans. */
export const BAN_KEYS = [VERSION_KEY, BANS_KEY, REASONS_KEY, BAN_ORDER_KEY] as const;
/** Denials of a client that a policy with `ban` has counted. It ends with `within`. */
export const denialsKey = (digest: string, row: string): string => `fg:{control}:denials:${digest}:${row}`;
/**
 * Bans by policies, past ones included: the clients and policies by the time of the last ban in microseconds, and a hash of
 * the end and the number of bans. Shadow mode has its own, because it must not change what is remembered of real bans.
 */
export const pastBansKeys = (isShadow: boolean): readonly [order: string, ends: string] => {
  const key = `fg:{control}:past-bans${isShadow ? '-shadow' : ''}`;
  return [`${key}-order`, key];
};
/** Twice as many as there are bans by policies at a time. The oldest is forgotten. */
export const PAST_BANS_MAX = 2 * POLICY_BANS_MAX;
/** The longest ban, and how long it is remembered. */
const PAST_BANS_MS = 2 * POLICY_BAN_MS_MAX;
/** Sorted set of changes by version. Each is its version and `ban DIGEST`, `cleared DIGEST`, `shadows` or `restored`. */
export const CHANGES_KEY = 'fg:{control}:changes';
/** A flood that has as many clients banned as there may be bans still fits. */
export const CHANGES_MAX = BANS_MAX;

/** Sorted set of buckets by the end of their shadow. */
export const SHADOWS_KEY = 'fg:{control}:shadows';

const NOW = `
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
`;
const VERSION_MS = BAN_MS_MAX + 86_400_000;
/** Makes a new version. Expects it in the first key, and changes and incarnation in the last two. */
const BUMP = `
local function bump(change)
  local version = math.max(tonumber(redis.call('GET', KEYS[1]) or 0) + 1, time[1] * 1000000 + time[2])
  version = string.format('%.0f', version)
  redis.call('SET', KEYS[1], version, 'PX', ${VERSION_MS})
  redis.call('SET', KEYS[#KEYS], version, 'PX', ${VERSION_MS}, 'NX')
  redis.call('PEXPIRE', KEYS[#KEYS], ${VERSION_MS})
  local changes = KEYS[#KEYS - 1]
  redis.call('ZADD', changes, version, version .. ' ' .. change)
  redis.call('ZREMRANGEBYRANK', changes, 0, ${-CHANGES_MAX - 1})
  redis.call('PEXPIRE', changes, ${VERSION_MS})
end
`;

/** Expects the keys of bans, reasons and order from the second on. */
const DROP_BANS = `
local function drop_ban(digest)
  redis.call('ZREM', KEYS[2], digest)
  redis.call('HDEL', KEYS[3], digest)
  redis.call('ZREM', KEYS[4], digest)
end
local function drop_ended()
  for _, digest in ipairs(redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', now)) do drop_ban(digest) end
end
local function expire_with_last()
  local last = redis.call('ZRANGE', KEYS[2], -1, -1, 'WITHSCORES')[2]
  if not last then return end
  for i = 2, 4 do redis.call('PEXPIREAT', KEYS[i], string.format('%.0f', tonumber(last) + 1000)) end
end
`;

/** Expects the keys version, bans, reasons and order first. */
const ADD_BAN = `${NOW}${BUMP}${DROP_BANS}
local function add_ban(digest, ms, reason, max)
  drop_ended()
  if not redis.call('ZSCORE', KEYS[2], digest) and redis.call('ZCARD', KEYS[2]) >= max then return false end
  redis.call('ZADD', KEYS[2], string.format('%.0f', now + ms), digest)
  redis.call('HSET', KEYS[3], digest, reason)
  redis.call('ZADD', KEYS[4], string.format('%.0f', time[1] * 1000000 + time[2]), digest)
  expire_with_last()
  bump('ban ' .. digest)
  return true
end
`;

/**
 * KEYS version, bans, reasons, order, changes, incarnation; ARGV digest, for how many ms, reason. Returns when the ban ends;
 * 0: too many bans.
 */
export const BAN = storeScript(`${ADD_BAN}
return add_ban(ARGV[1], ARGV[2], ARGV[3], ${BANS_MAX}) and now + ARGV[2] or 0
`);

/**
 * Counts denials of a client by a policy, and bans the client when there are enough. A longer ban, or one by an operator,
 * stays as it is.
 *
 * KEYS version, bans, reasons, order, denials, order and ends of past bans, changes, incarnation; ARGV digest, number of
 * denials, after how many to ban, within how many ms, for how many ms, 1 if bans grow, reason ('': shadow mode, only
 * count), name of the client and the policy among past bans. Returns the length of the ban in ms; 0: none is due; -1:
 * there are too many bans.
 */
export const COUNT_DENIALS = storeScript(`${ADD_BAN}
local ends, times = string.match(redis.call('HGET', KEYS[7], ARGV[8]) or '0 0', '(%d+) (%d+)')
if tonumber(ends) > now then return 0 end
local count = redis.call('INCRBY', KEYS[5], ARGV[2])
if count == tonumber(ARGV[2]) then redis.call('PEXPIRE', KEYS[5], ARGV[4]) end
if count < tonumber(ARGV[3]) then return 0 end
-- Only bans that grow depend on earlier ones.
times = ARGV[6] == '1' and now < ends + ${POLICY_BAN_MS_MAX} and tonumber(times) or 0
local ms = math.min(ARGV[5] * 2 ^ times, ${POLICY_BAN_MS_MAX})
local known = tonumber(redis.call('ZSCORE', KEYS[2], ARGV[1]) or 0)
local note = redis.call('HGET', KEYS[3], ARGV[1]) or ''
local isByPolicy = (string.find(note, '\\n', 1, true) or 0) > 1
local isLonger = known <= now or (isByPolicy and known < now + ms)
if ARGV[7] ~= '' and isLonger and not add_ban(ARGV[1], ms, ARGV[7], ${POLICY_BANS_MAX}) then return -1 end
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
 * Writes back what a process knows after the store has lost data. A store with the same incarnation has an older state,
 * which is replaced. A store with another one gets what it does not have.
 *
 * KEYS version, bans, reasons, order, shadows, changes, incarnation; ARGV known version, its incarnation, number of bans,
 * then digest, ms left and reason of each ban, the oldest first, then bucket and ms left of each shadow. Returns the new incarnation.
 */
export const RESTORE = storeScript(`
local known = tonumber(redis.call('GET', KEYS[1]) or 0)
local incarnation = redis.call('GET', KEYS[7])
if incarnation == ARGV[2] and known >= tonumber(ARGV[1]) then return incarnation end
${NOW}${BUMP}${DROP_BANS}
-- Every process reads all.
redis.call('DEL', KEYS[6])
if incarnation == ARGV[2] then redis.call('DEL', KEYS[2], KEYS[3], KEYS[4], KEYS[5]) end
local added = 0
local function add(key, max, name, ms)
  if redis.call('ZCARD', key) >= max then return 0 end
  local isNew = redis.call('ZADD', key, 'NX', string.format('%.0f', now + ms), name)
  added = added + isNew
  return isNew
end
local bans = 3 + ARGV[3] * 3
for i = 4, bans, 3 do
  if add(KEYS[2], ${BANS_MAX}, ARGV[i], ARGV[i + 1]) == 1 then
    redis.call('HSET', KEYS[3], ARGV[i], ARGV[i + 2])
    redis.call('ZADD', KEYS[4], string.format('%.0f', time[1] * 1000000 + time[2] + i), ARGV[i])
  end
end
expire_with_last()
for i = bans + 1, #ARGV, 2 do add(KEYS[5], ${SHADOWS_MAX}, ARGV[i], ARGV[i + 1]) end
local last = redis.call('ZRANGE', KEYS[5], -1, -1, 'WITHSCORES')[2]
if last then redis.call('PEXPIREAT', KEYS[5], string.format('%.0f', tonumber(last) + 1000)) end
if incarnation == ARGV[2] or known == 0 then
  if not incarnation then incarnation = ARGV[2] == '' and ARGV[1] or ARGV[2] end
  redis.call('SET', KEYS[1], ARGV[1], 'PX', ${VERSION_MS})
  redis.call('SET', KEYS[7], incarnation, 'PX', ${VERSION_MS})
elseif added > 0 or not incarnation then
  bump('restored')
end
return redis.call('GET', KEYS[7])
`);

/** KEYS version, bans, reasons, order, changes, incarnation; ARGV digest. Returns 1 if there was a ban. */
export const UNBAN = storeScript(`${NOW}${BUMP}${DROP_BANS}
local ends = tonumber(redis.call('ZSCORE', KEYS[2], ARGV[1]) or 0)
if ends == 0 then return 0 end
drop_ban(ARGV[1])
bump('ban ' .. ARGV[1])
return ends > now and 1 or 0
`);

/**
 * KEYS version, bans, reasons, order; ARGV how many bans at most. Returns how many there are, then digest, end and reason of
 * each, the newest first.
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

/** KEYS bans, reasons; ARGV digest. Returns when the ban ends (0: there is none) and the reason. */
export const BAN_OF = storeScript(`${NOW}
local ends = tonumber(redis.call('ZSCORE', KEYS[1], ARGV[1]) or 0)
if ends <= now then return { 0, '' } end
return { ends, redis.call('HGET', KEYS[2], ARGV[1]) or '' }
`);

/**
 * KEYS version, shadows, changes, incarnation; ARGV bucket, for how many ms. Returns when the shadow ends; 0: too many
 * shadows.
 */
export const SHADOW = storeScript(`${NOW}${BUMP}
redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', string.format('%.0f', now))
if not redis.call('ZSCORE', KEYS[2], ARGV[1]) and redis.call('ZCARD', KEYS[2]) >= ${SHADOWS_MAX} then return 0 end
redis.call('ZADD', KEYS[2], string.format('%.0f', now + ARGV[2]), ARGV[1])
local last = tonumber(redis.call('ZRANGE', KEYS[2], -1, -1, 'WITHSCORES')[2])
redis.call('PEXPIREAT', KEYS[2], string.format('%.0f', last + 1000))
bump('shadows')
return now + ARGV[2]
`);

/** KEYS version, shadows, changes, incarnation; ARGV bucket. Returns 1 if there was a shadow. */
export const UNSHADOW = storeScript(`${NOW}${BUMP}
local ends = tonumber(redis.call('ZSCORE', KEYS[2], ARGV[1]) or 0)
if ends == 0 then return 0 end
redis.call('ZREM', KEYS[2], ARGV[1])
bump('shadows')
return ends > now and 1 or 0
`);

/** KEYS shadows. Returns buckets and ends in turn. */
export const SHADOWED = storeScript(`${NOW}
return redis.call('ZRANGEBYSCORE', KEYS[1], '(' .. string.format('%.0f', now), '+inf', 'WITHSCORES')
`);

/** KEYS version, changes, incarnation; ARGV digest. */
export const NOTE_RESET = storeScript(`${NOW}${BUMP}
bump('cleared ' .. ARGV[1])
`);

/**
 * KEYS version, bans, reasons, shadows, changes, incarnation; ARGV known version and its incarnation. Returns version and
 * incarnation ('': there is none). If they are new, also the time, and either 1 and everything, or 0 and what has changed:
 * bans and their ends in turn (0: lifted), digests and reasons in turn, shadows and their ends in turn (null: no change),
 * digests whose counters were cleared.
 */
export const NEWS = storeScript(`
local version = redis.call('GET', KEYS[1])
local incarnation = redis.call('GET', KEYS[6]) or ''
if not version or (version == ARGV[1] and incarnation == ARGV[2]) then return { version or '', incarnation } end
${NOW}
local function active(key)
  return redis.call('ZRANGEBYSCORE', key, '(' .. string.format('%.0f', now), '+inf', 'WITHSCORES')
end
local newest = redis.call('ZRANGE', KEYS[5], -1, -1, 'WITHSCORES')[2]
local isComplete = redis.call('ZCOUNT', KEYS[5], ARGV[1], ARGV[1]) > 0 and tonumber(newest) == tonumber(version)
if not isComplete then
  return { version, incarnation, now, 1, active(KEYS[2]), redis.call('HGETALL', KEYS[3]), active(KEYS[4]), {} }
end
local bans, reasons, cleared, shadows, seen = {}, {}, {}, false, {}
for _, change in ipairs(redis.call('ZRANGEBYSCORE', KEYS[5], '(' .. ARGV[1], '+inf')) do
  local kind, digest = string.match(change, '^%d+ (%a+) ?(.*)$')
  if kind == 'shadows' then shadows = true end
  if kind == 'cleared' then cleared[#cleared + 1] = digest end
  if kind == 'ban' and not seen[digest] then
    seen[digest] = true
    bans[#bans + 1], bans[#bans + 2] = digest, redis.call('ZSCORE', KEYS[2], digest) or 0
    reasons[#reasons + 1], reasons[#reasons + 2] = digest, redis.call('HGET', KEYS[3], digest) or ''
  end
end
return { version, incarnation, now, 0, bans, reasons, shadows and active(KEYS[4]), cleared }
`);

/**
 * KEYS proof marker, then counters of the same identity; ARGV a JSON list with algorithm, window and limit of each
 * counter. Returns the time, the marker's PTTL, and the two numbers of each counter.
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

/** KEYS the counters of one identity. */
export const CLEAR = storeScript(`return redis.call('DEL', unpack(KEYS))`);

/** KEYS the salt. */
export const SALT = storeScript(`return redis.call('GET', KEYS[1])`);
