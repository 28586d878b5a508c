/**
 * Redis scripts for changes by operators and bans by policies.
 *
 * Each row (rows.ts) is a field of one hash, and a member of two sorted sets, by its version and by its end. Versions
 * come from the store's time and only grow. The store lists the newest ones. If it does not list the newest version that
 * a process has read, it has lost data, or the process is far behind. Then the process sends all rows that it knows, and
 * reads all.
 */
import { storeScript } from '#gateway/store/connection.ts';
import { BAN_MS_MAX, POLICY_BAN_MS_MAX } from './bans.ts';
import { POLICY_ROWS_MAX, ROWS_MAX } from './rows.ts';

/** Hash of the rows by kind and name. Its texts are the end, then ` -` for a removal, or ` +` and the note. */
export const ROWS_KEY = 'fg:{control}:rows';
/** Sorted set of the newest versions. */
export const VERSIONS_KEY = 'fg:{control}:versions';
/** Scripts that read or change rows get these keys: rows, their versions, their ends, and the newest versions. */
export const CONTROL_KEYS = [ROWS_KEY, 'fg:{control}:order', 'fg:{control}:ends', VERSIONS_KEY] as const;
export const VERSIONS_MAX = 1000;
/** Key that counts the denials of a client by a policy with `ban`. It expires after `within` of the policy. */
export const denialsKey = (offender: string): string => `fg:{control}:denials:${offender}`;
/** Sorted set of pairs of client and policy. The score is the end of the last ban times 32, plus the number of bans. */
export const PAST_BANS_KEY = 'fg:{control}:past-bans';
/** If there are more pairs, the store forgets the one whose ban ended first. */
export const PAST_BANS_MAX = 2 * POLICY_ROWS_MAX;

const NOW = `
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local function text(number) return string.format('%.0f', number) end
`;
const ROWS = `${NOW}
local rows, order, ends, versions = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local function drop(names)
  for _, name in ipairs(names) do
    redis.call('HDEL', rows, name)
    for _, key in ipairs({ order, ends }) do redis.call('ZREM', key, name) end
  end
end
-- They are all there, or none. Otherwise the store has evicted one, and gets all back from those who know them.
if redis.call('EXISTS', rows, order, ends) % 3 > 0 then redis.call('DEL', rows, order, ends, versions) end
drop(redis.call('ZRANGEBYSCORE', ends, '-inf', text(now), 'LIMIT', 0, 1000))
local function put(name, ms, row, version)
  redis.call('HSET', rows, name, text(now + ms) .. ' ' .. row)
  redis.call('ZADD', order, version, name)
  redis.call('ZADD', ends, text(now + ms), name)
  local over = redis.call('HLEN', rows) - ${ROWS_MAX}
  if over > 0 then drop(redis.call('ZRANGE', ends, 0, over - 1)) end
  for _, key in ipairs({ rows, order, ends }) do redis.call('PEXPIRE', key, ${BAN_MS_MAX}) end
end
local newest = redis.call('ZRANGE', versions, -1, -1)[1] or '0'
local function next_version(after)
  -- A new list has heard of no version before.
  if newest == '0' then redis.call('ZADD', versions, 0, 0) end
  newest = text(math.max(newest + 1, after + 1, time[1] * 1000000 + time[2]))
  redis.call('ZADD', versions, newest, newest)
  redis.call('ZREMRANGEBYRANK', versions, 0, ${-VERSIONS_MAX - 1})
  redis.call('PEXPIRE', versions, ${BAN_MS_MAX})
  return newest
end
-- Lists kind and name, version and text of each row, after the newest version and the time.
local function read(from, kind)
  local reply, listed = { newest, text(now) }, redis.call('ZRANGEBYSCORE', order, from, '+inf', 'WITHSCORES')
  for i = 1, #listed, 2 do
    if kind == '' or string.find(listed[i], kind .. ' ', 1, true) == 1 then
      local row = redis.call('HGET', rows, listed[i])
      for _, field in ipairs({ listed[i], listed[i + 1], row }) do reply[#reply + 1] = field end
    end
  end
  return reply
end
`;

/**
 * Sets a row.
 *
 * ARGV kind and name, length in ms, text without the end, maximum number of rows ('': it may replace the one that ends
 * first), 1 if a longer ban or one by an operator stays. Returns whether there was a row in force, and the end and the
 * version of the new row if it was set.
 */
export const CHANGE = storeScript(`${ROWS}
local ms, max = tonumber(ARGV[2]), tonumber(ARGV[4])
local known_end, known = string.match(redis.call('HGET', rows, ARGV[1]) or '0 -', '^(%d+) ([^\\n]*)')
local was = known ~= '-' and 1 or 0
if was == 1 and ARGV[5] == '1' and (known == '+' or tonumber(known_end) >= now + ms) then return { 1 } end
if max and was == 0 and redis.call('HLEN', rows) >= max then return { 0 } end
local version = next_version(0)
put(ARGV[1], ms, ARGV[3], version)
return { was, text(now + ms), version }
`);

/**
 * Reads what a process has not read, and puts back what the store has lost.
 *
 * ARGV newest version that the process has read, or `all`, then kind and name, remaining ms, version and text of each row
 * that the store may have lost. Returns the newest version (0: there is none, empty: the store does not list that of
 * the process), and if there is anything new, the time, and kind and name, version and text of each row.
 */
export const SYNC = storeScript(`${ROWS}
if ARGV[1] ~= 'all' and ARGV[1] ~= newest and not redis.call('ZSCORE', versions, ARGV[1]) then return { '' } end
local put_back = 0
for i = 2, #ARGV, 4 do
  local version = tonumber(ARGV[i + 2])
  if version > tonumber(redis.call('ZSCORE', order, ARGV[i]) or 0) then
    put(ARGV[i], tonumber(ARGV[i + 1]), ARGV[i + 3], ARGV[i + 2])
    put_back = math.max(put_back, version)
  end
end
if put_back > 0 then
  next_version(put_back)
  -- The rows have earlier versions than others have read. Without the other versions, they read all.
  redis.call('ZREMRANGEBYRANK', versions, 1, -2)
end
if ARGV[1] == newest then return { newest } end
return read(ARGV[1] == 'all' and '-inf' or '(' .. ARGV[1], '')
`);

/** Reads the rows of one kind, the newest last. ARGV the kind. */
export const LIST = storeScript(`${ROWS} return read('-inf', ARGV[1])`);

/** Reads the text of one row in force. ARGV kind and name. */
export const FIND = storeScript(`${ROWS} return redis.call('HGET', rows, ARGV[1])`);

/**
 * Counts denials, but none during a ban. When there are enough, it notes a ban and ends the count. KEYS denials and past
 * bans; ARGV name of the client and policy among past bans, number of new denials, time in ms within which they count,
 * number that bans, length of the first ban in ms, 1 if the next one is twice as long. Returns the length of the ban in
 * ms; 0 if there are not enough denials.
 */
export const COUNT_DENIALS = storeScript(`${NOW}
local past = tonumber(redis.call('ZSCORE', KEYS[2], ARGV[1]) or 0)
if past / 32 > now then return 0 end
local count = redis.call('INCRBY', KEYS[1], ARGV[2])
if count == tonumber(ARGV[2]) then redis.call('PEXPIRE', KEYS[1], ARGV[3]) end
if count < tonumber(ARGV[4]) then return 0 end
local bans = 0
if ARGV[6] == '1' and now < past / 32 + ${POLICY_BAN_MS_MAX} then bans = past % 32 end
local ms = math.min(ARGV[5] * 2 ^ bans, ${POLICY_BAN_MS_MAX})
redis.call('DEL', KEYS[1])
redis.call('ZADD', KEYS[2], text((now + ms) * 32 + math.min(bans + 1, 31)), ARGV[1])
redis.call('ZREMRANGEBYRANK', KEYS[2], 0, ${-PAST_BANS_MAX - 1})
redis.call('PEXPIRE', KEYS[2], ${2 * POLICY_BAN_MS_MAX})
return ms
`);

/** Reads a text, such as the salt. KEYS the text. */
export const READ = storeScript(`return redis.call('GET', KEYS[1])`);
