/**
 * And when Redis is gone? (GATEWAY.md §5)
 *
 * A check that fails is decided at once by each policy's `onStoreFailure`: `deny` refuses with 503, `allow` does not
 * count, `local` counts in this process against limit ÷ last known replicas. After repeated failures, or one lost
 * connection, the circuit opens: requests no longer wait for the store at all, while a heartbeat asks every 250 ms
 * whether it takes writes again. The first good one closes the circuit; nothing has to be restarted. It has also brought
 * salt and replicas back to a store that lost them. Beginning and end of an outage are each logged once.
 */
import type { Clock, Millis } from '#shared/clock.ts';
import { Charge, type Limiter, type Proof, type Waiter } from './limiter.ts';
import { MemoryLimiter } from './memory.ts';
import { type Asked, RedisLimiter, type StoreFailure } from './redis.ts';

export interface OutageLog {
  warn(fields: object, message: string): void;
  info(fields: object, message: string): void;
}

export interface GuardedLimiterOptions {
  readonly url: string;
  readonly clock: Clock;
  readonly log: OutageLog;
  readonly budgetMs: Millis;
  readonly replica: string;
  /** Candidate for the salt that the replicas share, ignored once the store keeps one; '': no salt is shared. */
  readonly salt: string;
  /** The replicas agreed on another salt, for instance after the store was emptied. */
  readonly onSalt: (salt: string) => void;
}

export interface StoreStats {
  /** Checks that failed, by kind. */
  readonly failures: Readonly<Record<StoreFailure, number>>;
  /** Requests decided without the store. */
  readonly degraded: number;
  readonly available: boolean;
  /** Living replicas, as last heard. */
  readonly replicas: number;
}

const FAILURES_TO_OPEN = 3;
const PROBE_MS: Millis = 250;
const HEARTBEAT_MS: Millis = 5000;
const HEARTBEAT_TIMEOUT_MS: Millis = 2000;
/**
 * So many heartbeats in a row must have heard of fewer replicas before that is believed: after an outage the store knows
 * only those who were quicker than we, and the next outage may begin before it has heard of the others.
 */
const FEWER_HEARD_TO_BELIEVE = 3;

const NOTHING_COUNTED = {
  buckets: [],
  admitted: 1,
  used: [],
  resetMs: [],
  divisor: 1,
  degraded: true,
} as const;

/** Redis behind a circuit breaker, with the stated rule for when it is gone. */
export class GuardedLimiter implements Limiter {
  readonly #options: GuardedLimiterOptions;
  readonly #store: RedisLimiter;
  readonly #fallback: MemoryLimiter;
  readonly #failures: Record<StoreFailure, number> = {
    timeout: 0,
    disconnected: 0,
    'out-of-memory': 0,
    error: 0,
  };
  #failuresInRow = 0;
  #replicas = 1;
  #fewerHeard = 0;
  #closed = false;
  #degraded = 0;
  #degradedBefore = 0;
  #openSince: Millis | null = null;
  #probeTimer: NodeJS.Timeout | undefined;
  #heartbeatTimer: NodeJS.Timeout | undefined;
  #salt: string;

  constructor(options: GuardedLimiterOptions) {
    this.#options = options;
    this.#salt = options.salt;
    this.#store = new RedisLimiter(options.url, {
      clock: options.clock,
      budgetMs: options.budgetMs,
      replica: options.replica,
      onFailure: (asked, failure, cause) => this.#onFailure(asked, failure, cause),
      onSuccess: () => {
        this.#failuresInRow = 0;
      },
    });
    this.#fallback = new MemoryLimiter({
      clock: options.clock,
      divisor: () => this.#replicas,
      degraded: true,
    });
  }

  /**
   * Connects and agrees on the salt with the other replicas.
   *
   * @throws the reason why the store cannot be used
   */
  async connect(): Promise<string> {
    await this.#store.connect();
    const { replicas, salt } = await this.#store.heartbeat(this.#salt, HEARTBEAT_TIMEOUT_MS);
    this.#replicas = Math.max(1, replicas);
    this.#salt = salt;
    this.#heartbeatTimer = setInterval(() => {
      // A missed heartbeat changes nothing: replicas stay as last known, and checks notice an outage themselves.
      this.#heartbeat(HEARTBEAT_TIMEOUT_MS).catch(() => undefined);
    }, HEARTBEAT_MS);
    this.#heartbeatTimer.unref();
    return this.#salt;
  }

  spend(charge: Charge, waiter: Waiter): void {
    if (this.#openSince === null) this.#store.spend(charge, waiter);
    else this.#decideAlone(charge, waiter);
  }

  prove(proof: Proof): void {
    this.#store.prove(proof);
  }

  stats(): StoreStats {
    return {
      failures: { ...this.#failures },
      degraded: this.#degraded,
      available: this.#openSince === null,
      replicas: this.#replicas,
    };
  }

  async close(): Promise<void> {
    this.#closed = true;
    clearInterval(this.#probeTimer);
    clearInterval(this.#heartbeatTimer);
    await this.#store.close();
    await this.#fallback.close();
  }

  async #heartbeat(budgetMs: Millis): Promise<void> {
    const { replicas, salt } = await this.#store.heartbeat(this.#salt, budgetMs);
    this.#fewerHeard = replicas < this.#replicas ? this.#fewerHeard + 1 : 0;
    if (this.#fewerHeard === 0 || this.#fewerHeard >= FEWER_HEARD_TO_BELIEVE) {
      this.#replicas = replicas;
      this.#fewerHeard = 0;
    }
    if (salt === this.#salt) return;
    this.#salt = salt;
    this.#options.onSalt(salt);
  }

  #onFailure(asked: readonly Asked[], failure: StoreFailure, cause: Error): void {
    for (const { waiters } of asked) this.#failures[failure] += waiters.length;
    this.#failuresInRow++;
    const mayOpen = this.#openSince === null && !this.#closed;
    if (mayOpen && (failure === 'disconnected' || this.#failuresInRow >= FAILURES_TO_OPEN)) {
      this.#open(failure, cause);
    }
    for (const { charge, waiters } of asked) {
      for (const waiter of waiters) this.#decideAlone(charge, waiter);
    }
  }

  #decideAlone(charge: Charge, waiter: Waiter): void {
    this.#degraded++;
    const enforced = charge.buckets.filter(({ policy }) => policy.mode === 'enforce');
    if (enforced.some(({ policy }) => policy.onStoreFailure === 'deny')) {
      waiter.onStoreUnavailable();
      return;
    }
    charge.local ??= new Charge(
      enforced.filter(({ policy }) => policy.onStoreFailure === 'local'),
      charge.proof,
    );
    if (charge.local.buckets.length === 0) waiter.onSpent(NOTHING_COUNTED, 0);
    else this.#fallback.spend(charge.local, waiter);
  }

  #open(failure: StoreFailure, cause: Error): void {
    const { clock, log } = this.#options;
    this.#openSince = clock();
    this.#degradedBefore = this.#degraded;
    log.warn(
      { failure, cause: cause.message, replicas: this.#replicas },
      'the store is unavailable; each policy decides by its onStoreFailure until it is back',
    );
    let probing = false;
    this.#probeTimer = setInterval(() => {
      if (probing) return;
      probing = true;
      this.#heartbeat(this.#options.budgetMs)
        .then(
          () => this.#close(),
          // Still away: the next probe asks again.
          () => undefined,
        )
        .finally(() => {
          probing = false;
        });
    }, PROBE_MS);
  }

  #close(): void {
    if (this.#openSince === null || this.#closed) return;
    const outageMs = Math.round(this.#options.clock() - this.#openSince);
    this.#openSince = null;
    this.#failuresInRow = 0;
    clearInterval(this.#probeTimer);
    this.#options.log.info(
      { outageMs, decidedWithoutStore: this.#degraded - this.#degradedBefore },
      'the store is available again',
    );
  }
}
