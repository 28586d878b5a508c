/**
 * Keeps the newest records of all replicas in Redis. It has a connection of its own, so that no request waits behind a
 * batch. The connection is opened when it is first needed.
 */
import type { Ranked } from '#gateway/observe/metrics/ranking.ts';
import type { StoreAccess } from '#gateway/store/access.ts';
import { type StoreConnection, storeScript } from '#gateway/store/connection.ts';
import { openStore } from '#gateway/store/open.ts';
import type { Millis } from '#shared/clock.ts';
import { within } from '#shared/within.ts';
import {
  DECISION_KEPT_MS,
  DECISIONS_MAX,
  type DecisionRecord,
  type DecisionStore,
  EXCHANGED_MAX,
} from './decision-record.ts';

const SILENCE_MS: Millis = 2000;

/**
 * KEYS: records by id, ids by time. ARGV: maximum number of records, lifetime in ms, then alternating ids and records.
 * A batch may be written twice, so existing records stay unchanged.
 */
const WRITE = storeScript(`
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
for i = 3, #ARGV, 2 do
  if redis.call('HSETNX', KEYS[1], ARGV[i], ARGV[i + 1]) == 1 then
    redis.call('ZADD', KEYS[2], string.format('%.0f', now), ARGV[i])
  end
end
local function forget(ids)
  for i = 1, #ids do
    redis.call('HDEL', KEYS[1], ids[i])
    redis.call('ZREM', KEYS[2], ids[i])
  end
end
forget(redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', string.format('%.0f', now - ARGV[2]), 'LIMIT', 0, 1000))
local over = redis.call('ZCARD', KEYS[2]) - ARGV[1]
if over > 0 then forget(redis.call('ZRANGE', KEYS[2], 0, over - 1)) end
redis.call('PEXPIRE', KEYS[1], ARGV[2])
redis.call('PEXPIRE', KEYS[2], ARGV[2])
return 1
`);
/** KEYS: records by id, ids by time. ARGV: id, count. Returns records that are older than the id, newest first. */
const LIST = storeScript(`
local from = 0
if ARGV[1] ~= '' then
  local rank = redis.call('ZREVRANK', KEYS[2], ARGV[1])
  if not rank then return {} end
  from = rank + 1
end
local ids = redis.call('ZREVRANGE', KEYS[2], from, from + ARGV[2] - 1)
if #ids == 0 then return {} end
return redis.call('HMGET', KEYS[1], unpack(ids))
`);
/** KEYS: records by id. ARGV: the id. */
const FIND = storeScript(`return redis.call('HGET', KEYS[1], ARGV[1])`);

/**
 * KEYS: texts by gateway, each after its time. ARGV: this gateway, its text, lifetime in ms, maximum number of texts.
 * Returns the texts of the other gateways.
 */
const EXCHANGE = storeScript(`
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
redis.call('HSET', KEYS[1], ARGV[1], string.format('%.0f ', now) .. ARGV[2])
redis.call('PEXPIRE', KEYS[1], ARGV[3])
local all = redis.call('HGETALL', KEYS[1])
local texts, oldest, oldestAt = {}, nil, now
for i = 1, #all, 2 do
  local at, text = string.match(all[i + 1], '^(%d+) (.*)$')
  at = tonumber(at)
  if at < now - ARGV[3] then redis.call('HDEL', KEYS[1], all[i])
  elseif all[i] ~= ARGV[1] then
    texts[#texts + 1] = text
    if at < oldestAt then oldest, oldestAt = all[i], at end
  end
end
if oldest and #texts >= tonumber(ARGV[4]) then redis.call('HDEL', KEYS[1], oldest) end
return texts
`);

const DENIED_KEY = 'fg:{decisions}:denied';
const DENIED_KEPT_MS: Millis = 3_600_000;
/** The most gateways that tell each other the clients that they denied most. */
const GATEWAYS_MAX = 64;

const RECORDS_KEY = 'fg:{decisions}:records';
const ORDER_KEY = 'fg:{decisions}:order';

export class RedisDecisions implements DecisionStore {
  readonly #connection: StoreConnection;
  #connecting: Promise<void> | null = null;

  constructor(access: StoreAccess) {
    this.#connection = openStore(access, { silenceMs: SILENCE_MS, onChange: () => undefined });
  }

  async write(records: readonly DecisionRecord[]): Promise<void> {
    await this.#connect();
    const args = [String(DECISIONS_MAX), String(DECISION_KEPT_MS)];
    for (const record of records) args.push(record.id, JSON.stringify(record));
    await within(SILENCE_MS, this.#connection.run(WRITE, [RECORDS_KEY, ORDER_KEY], args));
  }

  async find(id: string): Promise<DecisionRecord | null> {
    await this.#connect();
    const text = await within(SILENCE_MS, this.#connection.run(FIND, [RECORDS_KEY], [id]));
    return typeof text === 'string' ? (JSON.parse(text) as DecisionRecord) : null;
  }

  async list(before: string | null, count: number): Promise<readonly DecisionRecord[]> {
    await this.#connect();
    const keys = [RECORDS_KEY, ORDER_KEY];
    const reply = await within(SILENCE_MS, this.#connection.run(LIST, keys, [before ?? '', String(count)]));
    return (Array.isArray(reply) ? reply : [])
      .filter((text) => typeof text === 'string')
      .map((text) => JSON.parse(text) as DecisionRecord);
  }

  async exchangeDenied(gateway: string, own: readonly Ranked[]): Promise<readonly (readonly Ranked[])[]> {
    await this.#connect();
    const args = [gateway, JSON.stringify(own.slice(0, EXCHANGED_MAX)), DENIED_KEPT_MS, GATEWAYS_MAX].map(
      String,
    );
    const reply = await within(SILENCE_MS, this.#connection.run(EXCHANGE, [DENIED_KEY], args));
    return (Array.isArray(reply) ? reply : []).map((text) => JSON.parse(String(text)) as Ranked[]);
  }

  close(): void {
    this.#connection.close();
  }

  /** Waits for the first attempt to connect. Later calls fail at once while there is no connection. */
  #connect(): Promise<void> {
    this.#connecting ??= within(SILENCE_MS, this.#connection.connect()).catch(() => undefined);
    return this.#connecting;
  }
}
