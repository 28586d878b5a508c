/**
 * The shared store: Redis or Valkey, of the gateway's own. The only file that knows the client library.
 *
 * All charges of one turn of the event loop go out as one script, so under load Redis sees one command for many
 * requests while every decision stays exact. There is no offline queue and nothing is sent twice: what is not answered
 * within the budget is reported as failed, and `outage.ts` decides what then happens to the request. From a reply that
 * comes later only what it charged is learned.
 */
import { Redis } from 'ioredis';
import type { Identity } from '#gateway/identity/digest.ts';
import type { Clock, Millis } from '#shared/clock.ts';
import { FAIL_FAST } from '#shared/redis-options.ts';
import { within } from '#shared/within.ts';
import { type Charge, proofKey } from './charge.ts';
import {
  type Answer,
  keysOf,
  type PendingCheck,
  readReply,
  scriptCall,
  UnreadableReplyError,
} from './check.ts';
import type { KnownCounters } from './known-counters.ts';
import { HISTORY_MS, type LimitListener, PROVEN_LOCALLY_MS } from './limiter.ts';
import type { Debt } from './owed.ts';
import { SPEND_SCRIPT } from './spend-script.ts';

export type StoreFailure = 'timeout' | 'disconnected' | 'out-of-memory' | 'read-only' | 'error';

export interface RedisStoreOptions {
  readonly clock: Clock;
  readonly known: KnownCounters;
  /** How long a check may take, and not a millisecond longer. */
  readonly budgetMs: Millis;
  /** Name of this process among the replicas. */
  readonly replica: string;
  /** Checks could not be made. Called once per call of the store, with everyone who waits for its answer. */
  readonly onFailure: (checks: readonly PendingCheck[], failure: StoreFailure, cause: Error) => void;
  readonly onSuccess: () => void;
  /** Checks that were reported as failed have been made after all. */
  readonly onLateAnswers: (answers: readonly Answer[]) => void;
  /** The connection is lost, also when nothing was being asked. */
  readonly onDisconnected: (cause: Error) => void;
}

/** What a heartbeat learns. */
export interface Heartbeat {
  /** Living replicas, this one among them. */
  readonly replicas: number;
  /** This one's place among them in the order of their names, from 0. */
  readonly rank: number;
  /** The salt that all share; '' when it is none of the store's business. */
  readonly salt: string;
  /** By how much the store's clock is ahead of ours; as uncertain as the reply took. */
  readonly aheadMs: Millis;
}

interface Scripts {
  spend(keys: number, args: readonly string[]): Promise<unknown>;
  heartbeat(keys: number, args: readonly string[]): Promise<readonly [number, number, string, string]>;
}

/** Redis runs one script at a time: more keys than this are split, so that none holds it for long. */
export const KEYS_PER_SCRIPT_MAX = 200;
/** A connection on which nothing comes for so long while something is asked is dead, even if nobody has closed it. */
const SILENCE_MS_MAX: Millis = 2000;
const REPLICA_SILENT_SECONDS = 15;

/**
 * KEYS the replicas, the salt; ARGV this replica, the salt to keep when there is none ('': no salt is shared).
 * Replies how many replicas were heard of lately, how many of them stand before this one in the order of names, the salt
 * that all of them share, and the time in milliseconds.
 */
const HEARTBEAT_SCRIPT = `
local time = redis.call('TIME')
local now = tonumber(time[1])
redis.call('ZADD', KEYS[1], now, ARGV[1])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - ${REPLICA_SILENT_SECONDS})
redis.call('EXPIRE', KEYS[1], ${REPLICA_SILENT_SECONDS * 4})
if ARGV[2] ~= '' then redis.call('SET', KEYS[2], ARGV[2], 'NX') end
local before = 0
local names = redis.call('ZRANGE', KEYS[1], 0, -1)
for i = 1, #names do if names[i] < ARGV[1] then before = before + 1 end end
local salt = ARGV[2] ~= '' and redis.call('GET', KEYS[2]) or ''
return { #names, before, salt, string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000)) }
`;
const REPLICAS_KEY = 'fg:{control}:replicas';
const SALT_KEY = 'fg:{control}:salt';

export class RedisStore {
  readonly #options: RedisStoreOptions;
  readonly #redis: Redis;
  readonly #scripts: Scripts;
  #pending = new Map<string, PendingCheck>();
  /** Calls that were given up and may still be answered. */
  #late = 0;
  /** Why the connection is down, for the log; null until something goes wrong. */
  #lastError: Error | null = null;
  #isClosing = false;

  /** @param url redis://, or rediss:// for TLS */
  constructor(url: string, options: RedisStoreOptions) {
    this.#options = options;
    this.#redis = new Redis(url, {
      ...FAIL_FAST,
      socketTimeout: Math.max(SILENCE_MS_MAX, 2 * options.budgetMs),
    });
    this.#redis.defineCommand('spend', { lua: SPEND_SCRIPT });
    this.#redis.defineCommand('heartbeat', { lua: HEARTBEAT_SCRIPT });
    this.#scripts = this.#redis as unknown as Scripts;
    this.#redis.on('error', (error: Error) => {
      this.#lastError = error;
    });
    this.#redis.on('close', () => {
      if (!this.#isClosing) options.onDisconnected(this.#whyDown());
    });
  }

  get ready(): boolean {
    return this.#redis.status === 'ready';
  }

  /** Given up and perhaps still on their way: what they charge is not known yet. */
  get lateCalls(): number {
    return this.#late;
  }

  /** @throws the reason why the store cannot be reached; connecting goes on in the background */
  async connect(): Promise<void> {
    const refused = await this.#redis.connect().then(
      // The library calls itself ready also where the server refused the database of the URL, and then uses another.
      () => this.#lastError,
      (error: Error) => this.#lastError ?? error,
    );
    if (refused !== null) throw refused;
  }

  spend(charge: Charge, listener: LimitListener): void {
    if (!this.ready) {
      this.#options.onFailure([{ charge, listeners: [listener] }], 'disconnected', this.#whyDown());
      return;
    }
    const pending = this.#pending;
    const check = pending.get(charge.id);
    if (check !== undefined) {
      check.listeners.push(listener);
      return;
    }
    pending.set(charge.id, { charge, listeners: [listener] });
    if (pending.size === 1) setImmediate(() => this.#flush());
  }

  /** Charges what was admitted without the store. @throws what keeps the store from answering in time */
  async settle(debts: readonly Debt[], budgetMs: Millis): Promise<void> {
    const { keys, args } = scriptCall([], debts);
    await within(budgetMs, this.#scripts.spend(keys.length, [...keys, ...args]));
  }

  /** Forgotten by the store, the credential merely has to prove itself once more. */
  prove(credential: Identity): void {
    if (this.ready) this.#redis.set(proofKey(credential), '1', 'PX', HISTORY_MS).catch(ignored);
  }

  withdraw(credential: Identity): void {
    if (this.ready) this.#redis.del(proofKey(credential)).catch(ignored);
  }

  /**
   * Tells the store that this replica lives. It is a script that writes, so it also tells whether checks can be made.
   *
   * @param salt kept there when none is kept yet; '' when the salt is configured and none of the store's business
   * @throws what keeps the store from answering, or from answering in time
   */
  async heartbeat(salt: string, budgetMs: Millis): Promise<Heartbeat> {
    if (!this.ready) throw this.#whyDown();
    const { clock, replica } = this.#options;
    const askedAt = clock();
    const reply = await within(budgetMs, this.#scripts.heartbeat(2, [REPLICAS_KEY, SALT_KEY, replica, salt]));
    const [replicas, rank, shared, now] = reply;
    if (!Number.isSafeInteger(replicas) || !Number.isSafeInteger(rank) || typeof shared !== 'string')
      throw new UnreadableReplyError('the store sent a reply that cannot be read');
    return { replicas, rank, salt: shared, aheadMs: Number(now) - (askedAt + clock()) / 2 };
  }

  async close(): Promise<void> {
    this.#isClosing = true;
    if (this.ready) {
      await within(this.#options.budgetMs, this.#redis.zrem(REPLICAS_KEY, this.#options.replica)).catch(
        ignored,
      );
    }
    this.#redis.disconnect();
  }

  #whyDown(): Error {
    return this.#lastError ?? new Error('the connection is closed');
  }

  #flush(): void {
    const pending = this.#pending;
    this.#pending = new Map();
    let checks: PendingCheck[] = [];
    let keys = 0;
    for (const check of pending.values()) {
      const need = keysOf(check.charge);
      if (keys > 0 && keys + need > KEYS_PER_SCRIPT_MAX) {
        this.#ask(checks);
        checks = [];
        keys = 0;
      }
      keys += need;
      checks.push(check);
    }
    this.#ask(checks);
  }

  #ask(checks: readonly PendingCheck[]): void {
    const { clock, budgetMs, onFailure, onSuccess, onLateAnswers } = this.#options;
    const { keys, args } = scriptCall(checks);
    const askedAt = clock();
    let isLate = false;
    let giveUp: NodeJS.Immediate | undefined;
    const timer = setTimeout(() => {
      // After a stall of our own loop the answer may lie in the socket already: look there before giving up.
      giveUp = setImmediate(() => {
        isLate = true;
        this.#late++;
        onFailure(checks, 'timeout', new Error(`no answer within ${budgetMs} ms`));
      });
    }, budgetMs);
    const fail = (failure: StoreFailure, cause: Error): void => {
      if (isLate) onLateAnswers([]);
      else onFailure(checks, failure, cause);
    };
    const settled = (): void => {
      clearTimeout(timer);
      clearImmediate(giveUp);
      if (isLate) this.#late--;
    };
    this.#scripts.spend(keys.length, [...keys, ...args]).then(
      (reply) => {
        settled();
        const answers = this.#read(reply, checks, askedAt);
        if (answers instanceof Error) fail('error', answers);
        else if (isLate) onLateAnswers(answers);
        else {
          onSuccess();
          for (const { check, spent } of answers) {
            for (let i = 0; i < check.listeners.length; i++) check.listeners[i]?.onSpent(spent, i);
          }
        }
      },
      (error: Error) => {
        settled();
        fail(kindOf(error), error);
      },
    );
  }

  /** Reads the reply and learns from it. */
  #read(reply: unknown, checks: readonly PendingCheck[], askedAt: Millis): readonly Answer[] | Error {
    const { known, clock } = this.#options;
    let read: ReturnType<typeof readReply>;
    try {
      read = readReply(reply, checks);
    } catch (error) {
      return error as Error;
    }
    const now = clock();
    for (const { spent, charged, proven } of read.answers) {
      const { parts, resetMs } = spent;
      for (let i = 0; i < parts.length; i++) {
        const part = parts[i];
        const used = charged[i] ?? -1;
        if (part === undefined) continue;
        const isProven = proven[i] ?? null;
        if (part.credential !== null && isProven === true)
          known.prove(part.credential.identity, askedAt + PROVEN_LOCALLY_MS);
        if (used < 0) continue;
        // At the earliest the window ends so long after we asked, at the latest so long after we heard.
        known.note(part, used, askedAt + (resetMs[i] ?? 0) - 1, now - askedAt + 1, now);
        if (part.credential !== null && spent.admitted === 0)
          known.noteStranger(part.credential.identity, now);
      }
    }
    return read.answers;
  }
}

/** Redis 6 quotes the reply that stopped a script somewhere in its own; from 7 on the reply begins with it. */
function kindOf({ message }: Error): StoreFailure {
  if (/\bOOM\b/.test(message)) return 'out-of-memory';
  if (/\bREADONLY\b/.test(message)) return 'read-only';
  return /closed|ECONN|EPIPE|Stream isn't writeable|max retries per request/i.test(message)
    ? 'disconnected'
    : 'error';
}

/** For what may fail without consequence: the next attempt or the store's own expiry repairs it. */
function ignored(): void {}
