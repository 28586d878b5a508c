/** How the processes that share a store agree on their number, their order and a salt: each sends a heartbeat a second. */
import { type StoreConnection, storeScript } from '#gateway/store/connection.ts';
import type { Clock, Millis } from '#shared/clock.ts';
import { unreadable } from './check.ts';

const REPLICA_SILENT_SECONDS = 15;
/** For this time after a salt was stored, a replica can replace it with an older one that the store has lost. */
const SALT_SETTLES_MS: Millis = 60_000;

/**
 * KEYS: the replicas, the salt, the beginning of histories, the time of the salt. ARGV: this replica, its salt ('': no salt is
 * shared), how many milliseconds the beginning is kept ('': no histories are kept), the beginning that this replica knows
 * ('': none), the time of its salt ('': it has not been stored).
 *
 * Returns the number of live replicas, the number of those before this one in the order of names, the common salt, the
 * time in milliseconds, the beginning, the second of the last heartbeat of this replica, and the time of the salt.
 */
export const HEARTBEAT = storeScript(`
local time = redis.call('TIME')
local now = tonumber(time[1])
local last_beat = redis.call('ZSCORE', KEYS[1], ARGV[1]) or ''
redis.call('ZADD', KEYS[1], now, ARGV[1])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - ${REPLICA_SILENT_SECONDS})
redis.call('EXPIRE', KEYS[1], ${REPLICA_SILENT_SECONDS * 4})
local before = 0
local names = redis.call('ZRANGE', KEYS[1], 0, -1)
for i = 1, #names do if names[i] < ARGV[1] then before = before + 1 end end
local nowMs, since = string.format('%.0f', now * 1000 + math.floor(time[2] / 1000)), ''
local salt, salt_since = '', ''
if ARGV[2] ~= '' then
  local own = ARGV[5] ~= '' and ARGV[5] or nowMs
  salt, salt_since = redis.call('GET', KEYS[2]), redis.call('GET', KEYS[4]) or '0'
  -- If the store has lost the salt, a replica that starts may have just stored another one, by which no client is found.
  local is_just_stored = tonumber(nowMs) - tonumber(salt_since) < ${SALT_SETTLES_MS}
  if not salt or is_just_stored and tonumber(own) < tonumber(salt_since) then
    salt, salt_since = ARGV[2], own
    redis.call('SET', KEYS[2], salt)
    redis.call('SET', KEYS[4], salt_since)
  end
end
if ARGV[3] ~= '' then
  -- A store that has lost its data gets the beginning back. A time to come is from a clock that was wrong.
  local stored, known = tonumber(redis.call('GET', KEYS[3]) or nowMs), tonumber(ARGV[4] ~= '' and ARGV[4] or nowMs)
  since = string.format('%.0f', math.min(stored or known, known, tonumber(nowMs)))
  redis.call('SET', KEYS[3], since, 'PX', ARGV[3])
end
return { #names, before, salt, nowMs, since, last_beat, salt_since }
`);
/** KEYS: the replicas. ARGV: this replica. */
export const LEAVE = storeScript(`return redis.call('ZREM', KEYS[1], ARGV[1])`);
export const REPLICAS_KEY = 'fg:{control}:replicas';
export const SALT_KEY = 'fg:{control}:salt';
export const SALT_SINCE_KEY = 'fg:{control}:salt:since';
/** @param name changes with the salt, because histories are found by digests */
export const historySinceKey = (name: string): string => `fg:{control}:history:${name}`;

/** The histories of clients that this process keeps. */
export interface KeptHistories {
  readonly name: string;
  /** If no process keeps them for this time, they begin again. */
  readonly keptMs: Millis;
  /** When they began; null if this process does not know it. */
  readonly since: Millis | null;
}

export interface HistoryKeeper {
  /** @returns null if no policy needs them */
  inUse(): KeptHistories | null;
  /** Called after each heartbeat. @param since when the histories of this name began */
  hear(name: string, since: Millis): void;
}

/**
 * Number of heartbeats in a row that must report fewer replicas before this process uses the lower number. After an
 * outage, the store knows only the replicas that have reported so far, and the next outage may begin before it knows
 * the others.
 */
const FEWER_HEARD_TO_BELIEVE = 15;

/** The living replicas, as far as this process knows. */
export class Replicas {
  readonly #clock: Clock;
  readonly #name: string;
  /** Number of live replicas. It is at least 1, because it includes this one. */
  count = 1;
  /** Index of this replica in the order of their names, from 0 to below `count`. */
  rank = 0;
  #fewerHeard = 0;
  /** The last heartbeat: the common salt, when it was stored first, and the store's time. */
  #last = { salt: '', saltSince: '', storeNow: 0 };

  /** @param name of this process among the replicas */
  constructor(clock: Clock, name: string) {
    this.#clock = clock;
    this.#name = name;
  }

  /**
   * Reports to the store that this replica is alive. The script writes, so its success shows that checks can be made.
   *
   * @param salt stored if there is none yet; '' if the salt is configured and not in the store
   * @param histories null if no policy needs them
   * @throws StoreFault
   */
  async beat(store: StoreConnection, salt: string, histories: KeptHistories | null) {
    const askedAt = this.#clock();
    const last = this.#last;
    const known = last.salt === salt ? last.saltSince : null;
    const reply = await store.run(
      HEARTBEAT,
      [REPLICAS_KEY, SALT_KEY, historySinceKey(histories?.name ?? ''), SALT_SINCE_KEY],
      [this.#name, salt, ...[histories?.keptMs, histories?.since, known].map((one) => String(one ?? ''))],
    );
    const [replicas, rank, shared, now, since, beatAt, saltSince]: unknown[] = Array.isArray(reply)
      ? reply
      : [];
    if (!isWhole(replicas) || !isWhole(rank) || typeof shared !== 'string') throw unreadable();
    this.hear(replicas, rank);
    this.#last = { salt: shared, saltSince: String(saltSince), storeNow: Number(now) };
    return {
      /** The common salt; '' if it is configured. */
      salt: shared,
      /** When the histories in the store began; null if none are kept. */
      historySince: histories === null ? null : Number(since),
      /** Whether the store may have lost data since the last heartbeat of this replica. */
      hasLost: Number(beatAt) < Math.floor(last.storeNow / 1000),
      storeNow: this.#last.storeNow,
      askedAt,
      heardAt: this.#clock(),
    };
  }

  /** Takes the numbers of a heartbeat. */
  hear(replicas: number, rank: number): void {
    this.#fewerHeard = replicas < this.count ? this.#fewerHeard + 1 : 0;
    if (replicas < this.count && this.#fewerHeard < FEWER_HEARD_TO_BELIEVE) return;
    this.count = Math.max(1, replicas);
    this.rank = Math.min(rank, this.count - 1);
  }

  /** Signs off. */
  async leave(store: StoreConnection): Promise<void> {
    await store.run(LEAVE, [REPLICAS_KEY], [this.#name]);
  }
}

function isWhole(value: unknown): value is number {
  return Number.isSafeInteger(value);
}
