/**
 * Redis scripts for changes by operators and bans by policies.
 *
 * A ban or a shadow mode is one key that expires at its end, and a member of a sorted set, whose score is the version of
 * the change that made it. What was removed lately is a member of another set, with the version of the removal. So there
 * is a row for each change, and of two rows for the same name the later version holds, wherever they meet. Versions come
 * from the store's time and only grow.
 *
 * The store lists the newest versions. If it does not list the newest version that a process has read, it has lost data,
 * or the process is far behind. Then the process sends all rows that it knows, and reads all.
 */
import { storeScript } from '#gateway/store/connection.ts';
import { BAN_MS_MAX, BANS_MAX, POLICY_BAN_MS_MAX, POLICY_BANS_MAX } from './bans.ts';
import { REMOVED_MAX } from './rows.ts';
import { SHADOWS_MAX } from './shadows.ts';

/** Sorted set of the newest versions. The store has heard of all versions up to the first of them. */
export const VERSIONS_KEY = 'fg:{control}:versions';
/** Sorted set of what was removed lately, such as `ban DIGEST`, by version. */
export const REMOVED_KEY = 'fg:{control}:removed';
/** Scripts that make changes get these keys first. */
export const CONTROL_KEYS = [VERSIONS_KEY, REMOVED_KEY] as const;
export const VERSIONS_MAX = 1000;
/** Sorted set of the names of one kind by version. */
export const setKey = (kind: string): string => `fg:{control}:${kind}`;
/** Key of one row. Its text is the end, a space and the note. */
export const rowKey = (kind: string, name: string): string => `${setKey(kind)}:${name}`;
/** Key that counts the denials of a client by a policy with `ban`. It expires after `within` of the policy. */
export const denialsKey = (digest: string, row: string): string => `fg:{control}:denials:${digest}:${row}`;
/**
 * Sorted set of pairs of client and policy. The score is the end of the last ban times 32, plus the number of bans.
 * Shadow mode has its own set, because it must not change the history of real bans.
 */
export const pastBansKey = (isShadow: boolean): string =>
  `fg:{control}:past-bans${isShadow ? '-shadow' : ''}`;
/** If there are more pairs, the store forgets the one whose ban ended first. */
export const PAST_BANS_MAX = 2 * POLICY_BANS_MAX;

/** Rows and versions are kept for longer than any ban. */
const KEPT_MS = BAN_MS_MAX + 86_400_000;
const READS = `
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local function text(number) return string.format('%.0f', number) end
-- Adds the text of each row to names and versions. A row that has ended has none.
local function rows(set, listed)
  local reply = {}
  for i = 1, #listed, 2 do
    local row = redis.call('GET', set .. ':' .. listed[i])
    if row then for _, field in ipairs({ listed[i], listed[i + 1], row }) do reply[#reply + 1] = field end end
  end
  return reply
end
local function sweep(set)
  for _, name in ipairs(redis.call('ZRANGE', set, 0, -1)) do
    if redis.call('EXISTS', set .. ':' .. name) == 0 then redis.call('ZREM', set, name) end
  end
end
`;
const WRITES = `${READS}
local function has_room(set, name, max)
  if redis.call('EXISTS', set .. ':' .. name) == 1 or redis.call('ZCARD', set) < max then return true end
  -- A flood of clients for whom there is no room must cost little.
  if redis.call('SET', set .. '-swept', 1, 'NX', 'PX', 1000) then sweep(set) end
  return redis.call('ZCARD', set) < max
end
local function next_version(after)
  local newest = redis.call('ZRANGE', KEYS[1], -1, -1)[1]
  -- A new list has heard of no version before.
  if not newest then redis.call('ZADD', KEYS[1], 0, 0) end
  local version = text(math.max((newest or 0) + 1, after + 1, time[1] * 1000000 + time[2]))
  redis.call('ZADD', KEYS[1], version, version)
  redis.call('ZREMRANGEBYRANK', KEYS[1], 0, ${-VERSIONS_MAX - 1})
  redis.call('PEXPIRE', KEYS[1], ${KEPT_MS})
  return version
end
-- Without a length, it removes the row.
local function put(kind, name, ms, note, version)
  local set, removed = '${setKey('')}' .. kind, kind .. ' ' .. name
  if ms > 0 then
    redis.call('SET', set .. ':' .. name, text(now + ms) .. ' ' .. note, 'PX', text(ms))
    redis.call('ZADD', set, version, name)
    redis.call('ZREM', KEYS[2], removed)
  else
    redis.call('DEL', set .. ':' .. name)
    redis.call('ZREM', set, name)
    redis.call('ZADD', KEYS[2], version, removed)
    redis.call('ZREMRANGEBYRANK', KEYS[2], 0, ${-REMOVED_MAX - 1})
  end
  for _, key in ipairs({ set, KEYS[2] }) do redis.call('PEXPIRE', key, ${KEPT_MS}) end
end
`;

/**
 * Makes a change: sets a row, or removes it. Others hear of a removal even if the store does not have the row, because
 * one of them may.
 *
 * ARGV kind, name, length in ms (0: removes it), note, maximum number of rows. Returns whether there was a row, and the
 * end and the version of the new one. Without room for it, the version is 0.
 */
export const CHANGE = storeScript(`${WRITES}
local set, ms = '${setKey('')}' .. ARGV[1], tonumber(ARGV[3])
local was = redis.call('EXISTS', set .. ':' .. ARGV[2])
if ms > 0 and not has_room(set, ARGV[2], tonumber(ARGV[5])) then return { was, 0, 0 } end
local version = next_version(0)
put(ARGV[1], ARGV[2], ms, ARGV[4], version)
return { was, text(now + ms), version }
`);

/**
 * Reads what a process has not read, and puts back what the store has lost.
 *
 * ARGV newest version that the process has read, or `all`, then kind, name, remaining ms, version and note of each row
 * that the store may have lost. Returns the newest version (0: there is none, empty: the store does not list that of
 * the process), and if there is anything new, the time, the bans, the shadow modes, and what was removed with versions.
 */
export const SYNC = storeScript(`${WRITES}
local first, newest = redis.call('ZRANGE', KEYS[1], 0, 0)[1] or 0, redis.call('ZRANGE', KEYS[1], -1, -1)[1] or '0'
local is_listed = ARGV[1] == newest or redis.call('ZSCORE', KEYS[1], ARGV[1])
if ARGV[1] ~= 'all' and not is_listed then return { '' } end
local put_back = 0
for i = 2, #ARGV, 5 do
  local kind, name, ms, version = ARGV[i], ARGV[i + 1], tonumber(ARGV[i + 2]), tonumber(ARGV[i + 3])
  local set, max = '${setKey('')}' .. kind, kind == 'ban' and ${BANS_MAX} or ${SHADOWS_MAX}
  local has, removed = redis.call('ZSCORE', set, name) or 0, redis.call('ZSCORE', KEYS[2], kind .. ' ' .. name) or 0
  if version > math.max(first, has, removed) and (ms == 0 or has_room(set, name, max)) then
    put(kind, name, ms, ARGV[i + 4], ARGV[i + 3])
    put_back = math.max(put_back, version)
  end
end
if put_back > 0 then
  newest = next_version(put_back)
  -- The rows have earlier versions than others have read. Without the other versions, they read all.
  redis.call('ZREMRANGEBYRANK', KEYS[1], 1, -2)
end
if ARGV[1] == newest then return { newest } end
local reply, from = { newest, text(now) }, ARGV[1] == 'all' and '-inf' or '(' .. ARGV[1]
for _, kind in ipairs({ 'ban', 'shadow' }) do
  local set = '${setKey('')}' .. kind
  reply[#reply + 1] = rows(set, redis.call('ZRANGEBYSCORE', set, from, '+inf', 'WITHSCORES'))
end
reply[5] = redis.call('ZRANGEBYSCORE', KEYS[2], from, '+inf', 'WITHSCORES')
return reply
`);

/**
 * Counts denials of a client by a policy, and bans the client when there are enough. It does not replace a longer ban,
 * or a ban by an operator.
 *
 * KEYS also denials and past bans; ARGV digest, number of new denials, number of denials that cause a ban, time in ms
 * within which they count, length of the ban in ms, 1 if each ban is longer than the previous one, note (empty in shadow
 * mode, which only counts), name of the client and policy among past bans. Returns the length of the ban in ms (0: there
 * are not enough denials; -1: there are too many bans).
 */
export const COUNT_DENIALS = storeScript(`${WRITES}
local past = redis.call('ZSCORE', KEYS[4], ARGV[8]) or 0
local ends, times = math.floor(past / 32), past % 32
if ends > now then return 0 end
local count = redis.call('INCRBY', KEYS[3], ARGV[2])
if count == tonumber(ARGV[2]) then redis.call('PEXPIRE', KEYS[3], ARGV[4]) end
if count < tonumber(ARGV[3]) then return 0 end
-- Only bans that grow depend on earlier ones.
if ARGV[6] == '0' or now >= ends + ${POLICY_BAN_MS_MAX} then times = 0 end
local ms = math.min(ARGV[5] * 2 ^ times, ${POLICY_BAN_MS_MAX})
local set = '${setKey('ban')}'
local known, policy = string.match(redis.call('GET', set .. ':' .. ARGV[1]) or '0 ', '^(%d+) ([^\\n]*)')
local is_longer = tonumber(known) <= now or (policy ~= '' and tonumber(known) < now + ms)
if ARGV[7] ~= '' and is_longer then
  if not has_room(set, ARGV[1], ${POLICY_BANS_MAX}) then return -1 end
  put('ban', ARGV[1], ms, ARGV[7], next_version(0))
end
redis.call('DEL', KEYS[3])
redis.call('ZADD', KEYS[4], text((now + ms) * 32 + math.min(times + 1, 31)), ARGV[8])
redis.call('ZREMRANGEBYRANK', KEYS[4], 0, ${-PAST_BANS_MAX - 1})
redis.call('PEXPIRE', KEYS[4], ${2 * POLICY_BAN_MS_MAX})
return ms
`);

/** Lists the newest rows of one kind. ARGV kind, maximum number. Returns the number of all, and the rows. */
export const LIST = storeScript(`${READS}
local set = '${setKey('')}' .. ARGV[1]
sweep(set)
return { redis.call('ZCARD', set), rows(set, redis.call('ZREVRANGE', set, 0, ARGV[2] - 1, 'WITHSCORES')) }
`);

/** Reads a text, such as the salt or a ban. KEYS the text. */
export const READ = storeScript(`return redis.call('GET', KEYS[1])`);

/** Lists the names of live processes. KEYS the replicas. */
export const REPLICAS = storeScript(`return redis.call('ZRANGE', KEYS[1], 0, -1)`);
