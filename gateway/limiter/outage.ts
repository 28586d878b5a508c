/**
 * Redis behind a circuit breaker.
 *
 * The circuit opens if a call fails, the connection is lost, or the store does not answer for too long (patience.ts). All
 * waiting checks are then decided at once without Redis (local-decisions.ts), further requests do not wait for it, and a
 * heartbeat tests whether it accepts writes again. If it does, it is first charged for local admissions, and then the
 * circuit closes. So the store never decides while this process owes it something. Nothing has to be restarted.
 *
 * The heartbeat also runs while the circuit is closed, so an idle gateway notices an outage. The beginning and the end
 * of an outage are each logged once, with the cause.
 */

import type { Identity } from '#gateway/identity/digest.ts';
import type { VisitRule } from '#gateway/policy/regulars.ts';
import type { StoreAccess } from '#gateway/store/access.ts';
import type { StoreConnection } from '#gateway/store/connection.ts';
import { StoreRefusedError } from '#gateway/store/fault.ts';
import type { openStore } from '#gateway/store/open.ts';
import { Circuit, type Outage, PROBE_MS } from '#shared/circuit.ts';
import type { Clock, Millis } from '#shared/clock.ts';
import { within } from '#shared/within.ts';
import type { Charge } from './charge.ts';
import type { Adjustment, PendingCheck } from './check.ts';
import { KnownCounters } from './known-counters.ts';
import {
  type Exhausted,
  type Limiter,
  type LimitListener,
  type Outcome,
  PROVEN_LOCALLY_MS,
  PROVEN_MS,
  type Spent,
} from './limiter.ts';
import { LocalDecisions } from './local-decisions.ts';
import { changesFor } from './outcome.ts';
import type { StoreFailure } from './patience.ts';
import { RedisStore } from './redis.ts';
import { type HistoryKeeper, Replicas } from './replicas.ts';
import { StoreClock } from './store-clock.ts';

const HEARTBEAT_MS: Millis = 1000;
/** How long a start waits for an answer of the store before it goes on without it. */
const START_MS: Millis = 5000;
/** After an outage, other replicas need this time to charge their local admissions too. */
const SETTLE_MS: Millis = 2 * PROBE_MS;
/** Number of counters, 40 bytes each. */
const COUNTERS_MAX = 262_144;
const CREDENTIALS_MAX = 65_536;

const REFUSED = /\b(?:NOAUTH|WRONGPASS|NOPERM|DB index is out of range|invalid DB index|ERR AUTH)\b/;

interface OutageLog {
  warn(fields: object, message: string): void;
  info(fields: object, message: string): void;
}

export interface GuardedLimiterOptions {
  readonly store: StoreAccess;
  /** Opens the connection to the store. By default the address decides the kind. */
  readonly openStore?: typeof openStore;
  /** Maximum number of counters, and of credentials, to remember; a power of two. Default: 262,144 and 65,536. */
  readonly rememberedMax?: number;
  readonly clock: Clock;
  readonly log: OutageLog;
  readonly budgetMs: Millis;
  readonly replica: string;
  /** Proposed salt for all replicas, ignored if the store has one; '' if no salt is shared. */
  readonly salt: string;
  /** Called if the replicas agreed on another salt, for instance after the store was emptied. */
  readonly onSalt: (salt: string) => void;
  readonly histories?: HistoryKeeper | undefined;
}

interface StoreStats {
  /** Number of failed checks, by kind. */
  readonly failures: Readonly<Record<StoreFailure, number>>;
  /** Number of requests decided without the store. */
  readonly degraded: number;
  readonly available: boolean;
  /** The last time without the store; null if there was none. */
  readonly lastOutage: Outage | null;
  /** How often the circuit has opened. */
  readonly outages: number;
  /** Number of live replicas, as last reported. */
  readonly replicas: number;
  /** Number of remembered counters and credentials. */
  readonly remembered: number;
}

/** Limits with Redis, and without it during an outage. */
export class GuardedLimiter implements Limiter {
  readonly #options: GuardedLimiterOptions;
  readonly known: KnownCounters;
  readonly #replicas = new Replicas();
  readonly storeClock: StoreClock;
  readonly #store: RedisStore;
  readonly #local: LocalDecisions;
  readonly #failures: Record<StoreFailure, number> = {
    timeout: 0,
    disconnected: 0,
    'out-of-memory': 0,
    'read-only': 0,
    error: 0,
  };
  readonly #circuit: Circuit;
  #closed = false;
  #degradedBefore = 0;
  #timer: NodeJS.Timeout | undefined;
  #salt: string;

  constructor(options: GuardedLimiterOptions) {
    this.#options = options;
    this.#salt = options.salt;
    const { replica, rememberedMax, openStore } = options;
    this.known = new KnownCounters({
      countersMax: rememberedMax ?? COUNTERS_MAX,
      credentialsMax: rememberedMax ?? CREDENTIALS_MAX,
      replica,
    });
    this.#circuit = new Circuit(options.clock);
    this.storeClock = new StoreClock(options.clock);
    this.#store = new RedisStore(options.store, {
      openStore,
      clock: options.clock,
      storeClock: this.storeClock,
      known: this.known,
      budgetMs: options.budgetMs,
      replica: options.replica,
      log: options.log,
      onFailure: (checks, failure, cause) => this.#onFailure(checks, failure, cause),
      onUnmade: (charges, failure, cause) => {
        for (const one of charges) this.#local.owe(one);
        this.#open(failure, cause);
      },
      onDisconnected: (cause) => this.#open('disconnected', cause),
    });
    this.#local = new LocalDecisions({
      clock: options.clock,
      storeClock: this.storeClock,
      known: this.known,
      replicas: this.#replicas,
      commit: (owed) => this.#store.commit(owed),
    });
  }

  /**
   * Connects and agrees on the salt with the other replicas. If the store does not answer in time, `onStoreFailure` of
   * each policy decides from the beginning.
   *
   * @returns the initial salt
   * @throws StoreRefusedError if the store refuses for a reason that waiting does not change
   */
  async start(): Promise<string> {
    try {
      await within(START_MS, this.#store.connect());
      this.#salt = await this.#heartbeat();
      this.#schedule(HEARTBEAT_MS);
    } catch (error) {
      const { message } = error as Error;
      if (REFUSED.test(message))
        throw new StoreRefusedError(`the store at GATEWAY_REDIS_URL refuses this gateway: ${message}`, {
          cause: error,
        });
      this.#open('disconnected', error as Error);
    }
    return this.#salt;
  }

  get connection(): StoreConnection {
    return this.#store.connection;
  }

  knownExhausted(charge: Charge): readonly Exhausted[] | null {
    return this.known.exhausted(charge, this.#options.clock(), this.storeClock);
  }

  surelyDenies(charge: Charge): boolean {
    return this.knownExhausted(charge) !== null;
  }

  spend(charge: Charge, listener: LimitListener): void {
    if (this.#isOpen) this.#local.spend(charge, listener);
    else this.#store.spend(charge, listener);
  }

  conclude(outcomes: readonly Outcome[], isLocal: boolean): void {
    this.#local.conclude(outcomes);
    for (const outcome of outcomes)
      for (const change of changesFor(outcome, isLocal, this.storeClock.now())) this.#make(change);
  }

  release(spent: Spent, position: number): void {
    this.#store.leases.end(spent, position);
  }

  isProven(credential: Identity): boolean {
    const now = this.#options.clock();
    // During an outage, this process trusts its own knowledge of proofs for longer.
    const since = this.#isOpen ? now - (PROVEN_MS - PROVEN_LOCALLY_MS) : now;
    return this.known.proofs.isProven(credential, since);
  }

  askProofs(credentials: readonly Identity[]): Promise<void> | null {
    return this.#isOpen ? null : this.#store.proofs.ask(credentials);
  }

  isProofFresh(credential: Identity): boolean {
    return this.known.proofs.isFresh(credential, this.#options.clock());
  }

  prove(credential: Identity): void {
    const until = this.#options.clock() + PROVEN_LOCALLY_MS;
    this.known.proofs.prove(credential, until, until);
    this.#store.proofs.prove(credential);
  }

  visited(client: Identity, rule: VisitRule, network: () => Identity | null): void {
    if (!this.#isOpen) this.#store.visits.visited(client, rule, network);
  }

  withdraw(credential: Identity): void {
    this.known.proofs.withdraw(credential);
    this.#store.proofs.withdraw(credential);
  }

  stats(): StoreStats {
    return {
      failures: { ...this.#failures },
      degraded: this.#local.count,
      available: !this.#isOpen,
      lastOutage: this.#circuit.lastOutage,
      outages: this.#circuit.outages,
      replicas: this.#replicas.count,
      remembered: this.known.size,
    };
  }

  async close(): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#timer);
    await this.#store.close();
  }

  #schedule(delayMs: Millis): void {
    if (this.#closed) return;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#look(), delayMs);
    this.#timer.unref();
  }

  /** Sends one heartbeat. Its result opens or closes the circuit. */
  async #look(): Promise<void> {
    try {
      this.#adopt(await this.#heartbeat());
      if (this.#isOpen) await this.#recover();
      else this.#store.leases.renewDue();
      this.#schedule(HEARTBEAT_MS);
    } catch (error) {
      if (this.#closed) return;
      if (!this.#isOpen) this.#open(this.#store.ready ? 'timeout' : 'disconnected', error as Error);
      else if (this.#store.ready) this.#circuit.probeFailed();
      this.#schedule(this.#circuit.probeMs);
    }
  }

  /** @returns the salt that the replicas share */
  async #heartbeat(): Promise<string> {
    const { histories } = this.#options;
    const inUse = histories?.inUse() ?? null;
    const heartbeat = await this.#store.heartbeat(this.#salt, inUse);
    const { salt, historySince } = heartbeat;
    this.#replicas.hear(heartbeat);
    const change = this.storeClock.noteHeartbeat(heartbeat.storeNow, heartbeat.askedAt, heartbeat.heardAt);
    if (change.kind === 'first') this.#local.moveTimes(change.aheadMs);
    else if (change.kind === 'jump') this.known.forgetCounters();
    if (inUse !== null && historySince !== null) histories?.hear(inUse.name, historySince);
    if (heartbeat.hasLost) this.known.noteLoss(heartbeat.heardAt);
    // Histories are found by digests, and these change with the salt.
    if (salt === this.#salt) void this.#store.visits.restore();
    return salt;
  }

  /** Learns the first day of histories before the first request. Never rejects. */
  async learnHistories(): Promise<void> {
    if (!this.#isOpen) await this.#heartbeat().catch(() => undefined);
  }

  #adopt(salt: string): void {
    if (salt === this.#salt) return;
    this.#salt = salt;
    this.known.histories.clear();
    this.#options.onSalt(salt);
  }

  #onFailure(checks: readonly PendingCheck[], failure: StoreFailure, cause: Error): void {
    for (const { listeners } of checks) this.#failures[failure] += listeners.length;
    this.#open(failure, cause);
    for (const { charge, listeners } of checks)
      for (const listener of listeners) this.#local.spend(charge, listener);
  }

  #make(change: Adjustment): void {
    if (change.amount === 0) return;
    if (this.#isOpen) this.#local.owe(change);
    else this.#store.adjust(change);
  }

  #open(failure: StoreFailure, cause: Error): void {
    if (this.#closed || !this.#circuit.open()) return;
    const { log } = this.#options;
    this.#degradedBefore = this.#local.count;
    log.warn(
      { failure, cause: cause.message, replicas: this.#replicas.count },
      'the store is unavailable; each policy decides by its onStoreFailure until it is back',
    );
    this.#schedule(this.#circuit.probeMs);
    this.#store.giveUp(failure, cause);
  }

  /** @throws if the store fails again before all is charged */
  async #recover(): Promise<void> {
    await this.#local.commit();
    if (this.#replicas.count > 1) {
      await new Promise((resolve) => setTimeout(resolve, SETTLE_MS));
    }
    this.#store.leases.flush();
    const startedAt = this.#options.clock();
    // Requests are decided locally until the circuit closes, so there may be more to commit after each answer.
    do {
      await this.#local.commit();
      await this.#store.leases.renew(startedAt);
    } while (!this.#local.isSettled);
    if (!this.#isOpen || this.#closed) return;
    const outageMs = Math.round(this.#circuit.close());
    this.#options.log.info(
      { outageMs, decidedWithoutStore: this.#local.count - this.#degradedBefore },
      'the store is available again',
    );
  }

  get #isOpen(): boolean {
    return this.#circuit.isOpen;
  }
}
