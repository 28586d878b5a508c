/**
 * Keeps the newest records of all replicas in Redis. It has a connection of its own, so that no request waits behind a
 * batch. The connection is opened when it is first needed.
 */
import type { Ranked } from '#gateway/observe/metrics/ranking.ts';
import type { StoreAccess } from '#gateway/store/access.ts';
import { storeScript } from '#gateway/store/connection.ts';
import { LazyStore } from '#gateway/store/open.ts';
import type { Millis } from '#shared/clock.ts';
import {
  DECISION_KEPT_MS,
  DECISIONS_MAX,
  type DecisionRecord,
  type DecisionStore,
  EXCHANGED_MAX,
} from './decision-record.ts';

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
 * KEYS: sorted set of texts by time. ARGV: the last text of this gateway, its new one, lifetime in ms, maximum number of
 * texts. Returns all texts.
 */
const EXCHANGE = storeScript(`
local time = redis.call('TIME')
-- In microseconds: texts of one time would be in the order of their letters.
local now = time[1] * 1000000 + time[2]
redis.call('ZREM', KEYS[1], ARGV[1])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', string.format('%.0f', now - ARGV[3] * 1000))
redis.call('ZADD', KEYS[1], string.format('%.0f', now), ARGV[2])
redis.call('ZREMRANGEBYRANK', KEYS[1], 0, -ARGV[4] - 1)
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return redis.call('ZRANGE', KEYS[1], 0, -1)
`);

interface Told {
  readonly gateway: string;
  readonly denied: readonly Ranked[];
}

const DENIED_KEY = 'fg:{decisions}:denied';
const DENIED_KEPT_MS: Millis = 3_600_000;
/** The most gateways that tell each other the clients that they denied most. */
const GATEWAYS_MAX = 64;

const RECORDS_KEY = 'fg:{decisions}:records';
const ORDER_KEY = 'fg:{decisions}:order';

export class RedisDecisions implements DecisionStore {
  readonly #store: LazyStore;
  /** What this gateway told the others last. */
  #told = '';

  constructor(access: StoreAccess) {
    this.#store = new LazyStore(access);
  }

  async write(records: readonly DecisionRecord[]): Promise<void> {
    const args = [String(DECISIONS_MAX), String(DECISION_KEPT_MS)];
    for (const record of records) args.push(record.id, JSON.stringify(record));
    await this.#store.run(WRITE, [RECORDS_KEY, ORDER_KEY], args);
  }

  async find(id: string): Promise<DecisionRecord | null> {
    const text = await this.#store.run(FIND, [RECORDS_KEY], [id]);
    return typeof text === 'string' ? (JSON.parse(text) as DecisionRecord) : null;
  }

  async list(before: string | null, count: number): Promise<readonly DecisionRecord[]> {
    const reply = await this.#store.run(LIST, [RECORDS_KEY, ORDER_KEY], [before ?? '', String(count)]);
    return (Array.isArray(reply) ? reply : [])
      .filter((text) => typeof text === 'string')
      .map((text) => JSON.parse(text) as DecisionRecord);
  }

  async exchangeDenied(gateway: string, own: readonly Ranked[]): Promise<readonly (readonly Ranked[])[]> {
    const text = JSON.stringify({ gateway, denied: own.slice(0, EXCHANGED_MAX) });
    const args = [this.#told, text, String(DENIED_KEPT_MS), String(GATEWAYS_MAX)];
    const reply = await this.#store.run(EXCHANGE, [DENIED_KEY], args);
    this.#told = text;
    const all = (reply as string[]).map((one) => JSON.parse(one) as Told);
    // If an answer was lost, an older text of a gateway may still be there.
    const newest = new Map(all.map((told) => [told.gateway, told.denied]));
    newest.delete(gateway);
    return [...newest.values()];
  }

  close(): void {
    this.#store.close();
  }
}
