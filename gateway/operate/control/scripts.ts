/**
 * What the store keeps of an operator's doings, besides counters: bans, policies in shadow, and which counters were
 * cleared lately. Each
 * change gets a version, so that processes ask for one short text twice a second and for the rest only when it changed.
 * A version is made of the store's time, so that none comes twice even after the key has expired. Beside it stands the
 * incarnation, the first version of a store that was empty. By it a process sees that the store has lost what the process
 * knows, also when there has been a change since then.
 *
 * All of it expires: bans with the last of them, the list of cleared ones after an hour, the version after the longest
 * ban.
 */
import { COUNTERS_LUA } from '#gateway/limiter/general-script.ts';
import { storeScript } from '#gateway/store/connection.ts';
import { BAN_MS_MAX, BANS_MAX } from './bans.ts';
import { SHADOWS_MAX } from './shadows.ts';

export const VERSION_KEY = 'fg:{control}:version';
export const INCARNATION_KEY = 'fg:{control}:incarnation';
/** Sorted set: digest, and when the ban ends. */
export const BANS_KEY = 'fg:{control}:bans';
/** Hash: digest, and why. */
export const REASONS_KEY = 'fg:{control}:ban-reasons';
/** Sorted set: digest, and the version that cleared its counters. */
export const RESETS_KEY = 'fg:{control}:resets';

/** Sorted set: bucket, and when its shadow ends. */
export const SHADOWS_KEY = 'fg:{control}:shadows';

/** Of these, a process that was away longer forgets all counters. */
const RESETS_MAX = 1000;
export const RESETS_MS = 3_600_000;

const NOW = `
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
`;
const VERSION_MS = BAN_MS_MAX + 86_400_000;
/** The version is the first key, the incarnation the last one. */
const BUMP = `
local version = math.max(tonumber(redis.call('GET', KEYS[1]) or 0) + 1, time[1] * 1000000 + time[2])
version = string.format('%.0f', version)
redis.call('SET', KEYS[1], version, 'PX', ${VERSION_MS})
redis.call('SET', KEYS[#KEYS], version, 'PX', ${VERSION_MS}, 'NX')
redis.call('PEXPIRE', KEYS[#KEYS], ${VERSION_MS})
`;

/** KEYS the version, the bans, the reasons, the incarnation; ARGV digest, for how many ms, reason. Replies when it ends, or 0: too many. */
export const BAN = storeScript(`${NOW}
for _, gone in ipairs(redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', now)) do
  redis.call('ZREM', KEYS[2], gone)
  redis.call('HDEL', KEYS[3], gone)
end
if not redis.call('ZSCORE', KEYS[2], ARGV[1]) and redis.call('ZCARD', KEYS[2]) >= ${BANS_MAX} then return 0 end
redis.call('ZADD', KEYS[2], string.format('%.0f', now + ARGV[2]), ARGV[1])
redis.call('HSET', KEYS[3], ARGV[1], ARGV[3])
local last = string.format('%.0f', tonumber(redis.call('ZRANGE', KEYS[2], -1, -1, 'WITHSCORES')[2]) + 1000)
redis.call('PEXPIREAT', KEYS[2], last)
redis.call('PEXPIREAT', KEYS[3], last)
${BUMP}
return now + ARGV[2]
`);

/**
 * After the store has lost something: what a process knows is put back. To a store of the same incarnation, which is an
 * older state of what the process knows, as a whole; to another one what it does not have. KEYS the version, the bans, the
 * shadows, the reasons, the incarnation; ARGV the version known, its incarnation, how many bans, then digest, ms left and
 * reason of each, then bucket and ms left of each shadow. Replies the incarnation from then on.
 */
export const RESTORE = storeScript(`
local known = tonumber(redis.call('GET', KEYS[1]) or 0)
local incarnation = redis.call('GET', KEYS[5])
if incarnation == ARGV[2] and known >= tonumber(ARGV[1]) then return incarnation end
${NOW}
if incarnation == ARGV[2] then redis.call('DEL', KEYS[2], KEYS[3], KEYS[4]) end
local added = 0
local function add(key, max, name, ms)
  if redis.call('ZCARD', key) >= max then return 0 end
  local isNew = redis.call('ZADD', key, 'NX', string.format('%.0f', now + ms), name)
  added = added + isNew
  return isNew
end
local bans = 3 + ARGV[3] * 3
for i = 4, bans, 3 do
  if add(KEYS[2], ${BANS_MAX}, ARGV[i], ARGV[i + 1]) == 1 then redis.call('HSET', KEYS[4], ARGV[i], ARGV[i + 2]) end
end
for i = bans + 1, #ARGV, 2 do add(KEYS[3], ${SHADOWS_MAX}, ARGV[i], ARGV[i + 1]) end
for i = 2, 3 do
  local last = redis.call('ZRANGE', KEYS[i], -1, -1, 'WITHSCORES')[2]
  if last then
    last = string.format('%.0f', tonumber(last) + 1000)
    redis.call('PEXPIREAT', KEYS[i], last)
    if i == 2 then redis.call('PEXPIREAT', KEYS[4], last) end
  end
end
if incarnation == ARGV[2] or known == 0 then
  if not incarnation then incarnation = ARGV[2] == '' and ARGV[1] or ARGV[2] end
  redis.call('SET', KEYS[1], ARGV[1], 'PX', ${VERSION_MS})
  redis.call('SET', KEYS[5], incarnation, 'PX', ${VERSION_MS})
elseif added > 0 or not incarnation then
  ${BUMP}
end
return redis.call('GET', KEYS[5])
`);

/** KEYS the version, the bans, the reasons, the incarnation; ARGV digest. Replies 1 where there was a ban. */
export const UNBAN = storeScript(`${NOW}
local ends = tonumber(redis.call('ZSCORE', KEYS[2], ARGV[1]) or 0)
if ends == 0 then return 0 end
redis.call('ZREM', KEYS[2], ARGV[1])
redis.call('HDEL', KEYS[3], ARGV[1])
${BUMP}
return ends > now and 1 or 0
`);

/** KEYS the bans, the reasons; ARGV digest. Replies when it ends, 0 where there is none, and why. */
export const BAN_OF = storeScript(`${NOW}
local ends = tonumber(redis.call('ZSCORE', KEYS[1], ARGV[1]) or 0)
if ends <= now then return { 0, '' } end
return { ends, redis.call('HGET', KEYS[2], ARGV[1]) or '' }
`);

/** KEYS the version, the shadows, the incarnation; ARGV bucket, for how many ms. Replies when it ends, or 0: too many. */
export const SHADOW = storeScript(`${NOW}
redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', string.format('%.0f', now))
if not redis.call('ZSCORE', KEYS[2], ARGV[1]) and redis.call('ZCARD', KEYS[2]) >= ${SHADOWS_MAX} then return 0 end
redis.call('ZADD', KEYS[2], string.format('%.0f', now + ARGV[2]), ARGV[1])
local last = tonumber(redis.call('ZRANGE', KEYS[2], -1, -1, 'WITHSCORES')[2])
redis.call('PEXPIREAT', KEYS[2], string.format('%.0f', last + 1000))
${BUMP}
return now + ARGV[2]
`);

/** KEYS the version, the shadows, the incarnation; ARGV bucket. Replies 1 where there was one. */
export const UNSHADOW = storeScript(`${NOW}
local ends = tonumber(redis.call('ZSCORE', KEYS[2], ARGV[1]) or 0)
if ends == 0 then return 0 end
redis.call('ZREM', KEYS[2], ARGV[1])
${BUMP}
return ends > now and 1 or 0
`);

/** KEYS the shadows. Replies buckets and ends in turn. */
export const SHADOWED = storeScript(`${NOW}
return redis.call('ZRANGEBYSCORE', KEYS[1], '(' .. string.format('%.0f', now), '+inf', 'WITHSCORES')
`);

/** KEYS the version, the list of cleared ones, the incarnation; ARGV digest. */
export const NOTE_RESET = storeScript(`${NOW}${BUMP}
redis.call('ZADD', KEYS[2], version, ARGV[1])
redis.call('ZREMRANGEBYRANK', KEYS[2], 0, -${RESETS_MAX + 1})
redis.call('PEXPIRE', KEYS[2], ${RESETS_MS})
return version
`);

/**
 * KEYS the version, the bans, the list of cleared ones, the shadows, the reasons, the incarnation; ARGV the version known
 * and its incarnation. Replies version and incarnation alone ('': there is none) where nothing is new; else also now, bans
 * and their ends in turn, digests cleared since, 1 where older ones are not listed any more, shadows and their ends in
 * turn, and digests and reasons in turn.
 */
export const NEWS = storeScript(`
local version = redis.call('GET', KEYS[1])
local incarnation = redis.call('GET', KEYS[6]) or ''
if not version or (version == ARGV[1] and incarnation == ARGV[2]) then return { version or '', incarnation } end
${NOW}
local oldest = redis.call('ZRANGE', KEYS[3], 0, 0, 'WITHSCORES')[2]
local isCut = redis.call('ZCARD', KEYS[3]) >= ${RESETS_MAX} and tonumber(oldest) > tonumber(ARGV[1])
return {
  version, incarnation, now, redis.call('ZRANGEBYSCORE', KEYS[2], '(' .. string.format('%.0f', now), '+inf', 'WITHSCORES'),
  redis.call('ZRANGEBYSCORE', KEYS[3], '(' .. ARGV[1], '+inf'), isCut and 1 or 0,
  redis.call('ZRANGEBYSCORE', KEYS[4], '(' .. string.format('%.0f', now), '+inf', 'WITHSCORES'),
  redis.call('HGETALL', KEYS[5])
}
`);

/**
 * KEYS the proof marker, then counters of the same identity; ARGV one JSON list: of each its algorithm, window in ms and
 * limit. Replies now, the marker's PTTL, and of each the two numbers that it holds.
 */
export const LOOK = storeScript(`${COUNTERS_LUA}
local list = cjson.decode(ARGV[1])
local reply = { string.format('%.0f', now), redis.call('PTTL', KEYS[1]) }
for i = 2, #KEYS do
  local a, b = read[list[i * 3 - 5]](KEYS[i], list[i * 3 - 4], list[i * 3 - 3])
  reply[i * 2 - 1], reply[i * 2] = string.format('%.0f', a), string.format('%.0f', b)
end
return reply
`);

/** KEYS counters of one identity. */
export const CLEAR = storeScript(`return redis.call('DEL', unpack(KEYS))`);

/** KEYS the salt. */
export const SALT = storeScript(`return redis.call('GET', KEYS[1])`);
