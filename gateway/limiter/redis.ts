/**
 * The shared store: Redis or Valkey, of the gateway's own. The only file that knows the client library.
 *
 * All charges of one turn of the event loop go out as one script, so under load Redis sees one command for many
 * requests while every verdict stays exact. There is no offline queue and nothing is sent twice: what is not answered
 * within the budget is reported as failed, and `outage.ts` decides what then happens to the request. A reply that
 * comes later is ignored; what it charged stays charged, so a slow store errs to the strict side.
 */
import { Redis } from 'ioredis';
import type { Policy } from '#gateway/policy/policy.ts';
import type { Clock, Millis } from '#shared/clock.ts';
import { FAIL_FAST } from '#shared/redis-options.ts';
import { within } from '#shared/within.ts';
import {
  type Charge,
  effectiveLimit,
  PROVEN_IN_STORE_MS,
  PROVEN_LOCALLY_MS,
  type Proof,
  rememberExhausted,
  type Spent,
  untilWindowEnd,
  type Waiter,
} from './limiter.ts';
import { SPEND_SCRIPT } from './spend-script.ts';

export type StoreFailure = 'timeout' | 'disconnected' | 'out-of-memory' | 'error';

export interface RedisLimiterOptions {
  readonly clock: Clock;
  /** How long a check may take, and not a millisecond longer. */
  readonly budgetMs: Millis;
  /** Name of this process among the replicas. */
  readonly replica: string;
  /** A check could not be made. Called once per call of the store, with everyone who waits for its answer. */
  readonly onFailure: (asked: readonly Asked[], failure: StoreFailure, cause: Error) => void;
  readonly onSuccess: () => void;
}

/** A charge, and all who wait for it. */
export interface Asked {
  readonly charge: Charge;
  readonly waiters: Waiter[];
}

interface Scripts {
  spend(keys: number, args: readonly (string | number)[]): Promise<string>;
  heartbeat(keys: number, args: readonly (string | number)[]): Promise<readonly [number, string]>;
}

/** Redis runs one script at a time: more keys than this are split, so that none holds it for long. */
const KEYS_PER_SCRIPT_MAX = 200;
/** A connection on which nothing comes for so long while something is asked is dead, even if nobody has closed it. */
const SILENCE_MS_MAX: Millis = 2000;
const REPLICA_SILENT_SECONDS = 15;

/**
 * KEYS the replicas, the salt; ARGV this replica, the salt to keep when there is none ('': no salt is shared).
 * Replies the number of replicas heard of lately and the salt that all of them share.
 */
const HEARTBEAT_SCRIPT = `
local now = tonumber(redis.call('TIME')[1])
redis.call('ZADD', KEYS[1], now, ARGV[1])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - ${REPLICA_SILENT_SECONDS})
redis.call('EXPIRE', KEYS[1], ${REPLICA_SILENT_SECONDS * 4})
if ARGV[2] ~= '' then redis.call('SET', KEYS[2], ARGV[2], 'NX') end
return { redis.call('ZCARD', KEYS[1]), ARGV[2] ~= '' and redis.call('GET', KEYS[2]) or '' }
`;
const REPLICAS_KEY = 'fg:{control}:replicas';
const SALT_KEY = 'fg:{control}:salt';

export class RedisLimiter {
  readonly #options: RedisLimiterOptions;
  readonly #redis: Redis;
  readonly #scripts: Scripts;
  #pending: Asked[] = [];
  /** Why the connection is down, for the log; null until something goes wrong. */
  #lastError: Error | null = null;

  /** @param url redis://, or rediss:// for TLS */
  constructor(url: string, options: RedisLimiterOptions) {
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
  }

  /** @throws the reason why the store cannot be reached */
  async connect(): Promise<void> {
    const refused = await this.#redis.connect().then(
      // The library calls itself ready also where the server refused the database of the URL, and then uses another.
      () => this.#lastError,
      (error: Error) => this.#lastError ?? error,
    );
    if (refused === null) return;
    this.#redis.disconnect();
    throw refused;
  }

  spend(charge: Charge, waiter: Waiter): void {
    if (this.#redis.status !== 'ready') {
      this.#options.onFailure([{ charge, waiters: [waiter] }], 'disconnected', this.#whyDown());
      return;
    }
    const pending = this.#pending;
    const asked = pending[charge.place];
    if (asked?.charge === charge) {
      asked.waiters.push(waiter);
      return;
    }
    charge.place = pending.length;
    if (pending.push({ charge, waiters: [waiter] }) === 1) setImmediate(() => this.#flush());
  }

  prove(proof: Proof): void {
    proof.provenUntil = this.#options.clock() + PROVEN_LOCALLY_MS;
    // Forgotten by the store, the credential merely has to prove itself once more.
    if (this.#redis.status === 'ready')
      this.#redis.set(proof.proofKey, '1', 'PX', PROVEN_IN_STORE_MS).catch(noted);
  }

  /**
   * Tells the store that this replica lives. It is a script that writes, so it also tells whether checks can be made.
   *
   * @param salt kept there when none is kept yet; '' when the salt is configured and none of the store's business
   * @returns how many replicas live, and the salt that they share
   * @throws what keeps the store from answering, or from answering in time
   */
  async heartbeat(
    salt: string,
    budgetMs: Millis,
  ): Promise<{ readonly replicas: number; readonly salt: string }> {
    if (this.#redis.status !== 'ready') throw this.#whyDown();
    const call = this.#scripts.heartbeat(2, [REPLICAS_KEY, SALT_KEY, this.#options.replica, salt]);
    const [replicas, shared] = await within(budgetMs, call);
    return { replicas, salt: shared };
  }

  async close(): Promise<void> {
    if (this.#redis.status === 'ready') {
      await within(this.#options.budgetMs, this.#redis.zrem(REPLICAS_KEY, this.#options.replica)).catch(
        noted,
      );
    }
    this.#redis.disconnect();
  }

  #whyDown(): Error {
    return this.#lastError ?? new Error('the connection is closed');
  }

  #flush(): void {
    const pending = this.#pending;
    this.#pending = [];
    let asked: Asked[] = [];
    let keys = 0;
    for (const one of pending) {
      const { buckets, proof } = one.charge;
      const need = buckets.length + (proof === null ? 0 : 1);
      if (keys > 0 && keys + need > KEYS_PER_SCRIPT_MAX) {
        this.#ask(asked);
        asked = [];
        keys = 0;
      }
      keys += need;
      asked.push(one);
    }
    this.#ask(asked);
  }

  #ask(asked: readonly Asked[]): void {
    const { clock, budgetMs, onFailure, onSuccess } = this.#options;
    const { keys, args } = this.#script(asked);
    const askedAt = clock();
    let settled = false;
    const fail = (failure: StoreFailure, cause: Error): void => {
      if (settled) return;
      settled = true;
      onFailure(asked, failure, cause);
    };
    const timer = setTimeout(() => {
      // After a stall of our own loop the answer may lie in the socket already: look there before giving up.
      setImmediate(fail, 'timeout', new Error(`no answer within ${budgetMs} ms`));
    }, budgetMs);
    this.#scripts.spend(keys, args).then(
      (reply) => {
        clearTimeout(timer);
        if (settled) return;
        settled = true;
        onSuccess();
        this.#answer(asked, JSON.parse(reply) as readonly number[], askedAt);
      },
      (error: Error) => {
        clearTimeout(timer);
        fail(kindOf(error), error);
      },
    );
  }

  /** Writes the script's KEYS and ARGV. */
  #script(asked: readonly Asked[]): { readonly keys: number; readonly args: string[] } {
    const places = new Map<Policy, number>();
    const policies: number[] = [];
    const charges: number[] = [];
    const args: string[] = [];
    for (const { charge, waiters } of asked) {
      const { buckets, proof } = charge;
      if (proof !== null) args.push(proof.proofKey);
      charges.push(waiters.length, proof === null ? buckets.length : -buckets.length);
      for (const { key, policy, onlyUnproven } of buckets) {
        args.push(key);
        let place = places.get(policy);
        if (place === undefined) {
          place = places.size + 1;
          places.set(policy, place);
          policies.push(policy.mode === 'shadow' ? -policy.limit : policy.limit, policy.windowMs);
        }
        charges.push(onlyUnproven ? -place : place);
      }
    }
    const keys = args.length;
    args.push(JSON.stringify([policies, charges]));
    return { keys, args };
  }

  #answer(asked: readonly Asked[], reply: readonly number[], askedAt: Millis): void {
    const now = reply[0] ?? 0;
    let at = 1;
    // Behind the counters: the charges of which not all are admitted.
    let cut = 1 + asked.reduce((sum, { charge }) => sum + charge.buckets.length, 0);
    for (const [place, { charge, waiters }] of asked.entries()) {
      const { buckets, proof } = charge;
      let admitted = waiters.length;
      if (reply[cut] === place) {
        admitted = reply[cut + 1] ?? 0;
        cut += 2;
      }
      const used: number[] = [];
      const resetMs: Millis[] = [];
      let exhausted = false;
      for (const { policy } of buckets) {
        const count = reply[at++] ?? 0;
        if (count < 0 && proof !== null) proof.provenUntil = askedAt + PROVEN_LOCALLY_MS;
        used.push(count);
        resetMs.push(untilWindowEnd(now, policy.windowMs));
        exhausted ||= count + admitted >= effectiveLimit(policy, 1);
      }
      const spent: Spent = { buckets, admitted, used, resetMs, divisor: 1, degraded: false };
      if (exhausted) rememberExhausted(spent, askedAt, this.#options.clock);
      for (let i = 0; i < waiters.length; i++) waiters[i]?.onSpent(spent, i);
    }
  }
}

/** Redis 6 quotes the reply that stopped a script somewhere in its own; from 7 on the reply begins with it. */
function kindOf(error: Error): StoreFailure {
  if (/\bOOM\b/.test(error.message)) return 'out-of-memory';
  return /closed|ECONN|EPIPE|Stream isn't writeable|max retries per request/i.test(error.message)
    ? 'disconnected'
    : 'error';
}

/** For what may fail without consequence: the next attempt or the store's own expiry repairs it. */
function noted(): void {}
