/**
 * Redis behind a circuit breaker. This object says whether the store decides.
 *
 * The circuit opens if a call fails, the connection is lost, or the store does not answer for too long. All waiting checks
 * are then decided at once without Redis (local-decisions.ts), and further requests do not wait for it. A heartbeat tests
 * whether Redis accepts writes; an idle gateway notices an outage by it too. If it does again, it is first charged for local
 * admissions, and then the circuit closes. So the store never decides while this process owes it something.
 */

import type { Identity } from '#gateway/identity/digest.ts';
import type { VisitRule } from '#gateway/policy/groups.ts';
import type { StoreAccess } from '#gateway/store/access.ts';
import { Circuit, PROBE_MS } from '#gateway/store/circuit.ts';
import type { StoreConnection } from '#gateway/store/connection.ts';
import { type FaultKind, StoreFault, throwIfRefused } from '#gateway/store/fault.ts';
import { openStore } from '#gateway/store/open.ts';
import type { Clock, Millis } from '#shared/clock.ts';
import { within } from '#shared/within.ts';
import type { Charge } from './charge.ts';
import type { Adjustment } from './check.ts';
import { KnownCounters } from './known-counters.ts';
import { StoredLeases } from './leases.ts';
import {
  type Limiter,
  type LimitListener,
  type Outcome,
  type PendingCheck,
  PROVEN_LOCALLY_MS,
  PROVEN_MS,
  type Spent,
  type Violation,
} from './limiter.ts';
import { LocalDecisions } from './local-decisions.ts';
import type { VisitsLog } from './new-clients.ts';
import { changesFor } from './outcome.ts';
import { Proofs } from './proofs.ts';
import { type HistoryKeeper, Replicas } from './replicas.ts';
import { StoreCalls } from './store-calls.ts';
import { StoreClock } from './store-clock.ts';
import { Visits } from './visits.ts';

/**
 * A call without an answer for so many budgets counts as lost. Deciding without a store that is only slow admits too much or
 * too little, so this is longer than the stalls of a busy machine.
 */
const SILENT_BUDGETS = 11;
const HEARTBEAT_MS: Millis = 1000;
/** How long a start waits for an answer of the store before it goes on without it. */
const START_MS: Millis = 5000;
/** After an outage, other replicas need this time to charge their local admissions too. */
const SETTLE_MS: Millis = 2 * PROBE_MS;
const COUNTERS_MAX = 262_144;

interface OutageLog extends VisitsLog {
  info(fields: object, message: string): void;
}

export interface GuardedLimiterOptions {
  readonly store: StoreAccess;
  /** Opens the connection to the store. By default the address decides the kind. */
  readonly openStore?: typeof openStore;
  /** Maximum number of counters, and of credentials, to remember; a power of two. Default: 262,144. */
  readonly rememberedMax?: number | undefined;
  readonly clock: Clock;
  readonly log: OutageLog;
  /** A tenth of the time that a call waits. */
  readonly budgetMs: Millis;
  readonly replica: string;
  /** Proposed salt for all replicas, ignored if the store has one; '' if no salt is shared. */
  readonly salt: string;
  /** Called if the replicas agreed on another salt, for instance after the store was emptied. */
  readonly onSalt: (salt: string) => void;
  readonly histories?: HistoryKeeper | undefined;
}

/** Limits with Redis, and without it during an outage. */
export class GuardedLimiter implements Limiter {
  readonly #options: GuardedLimiterOptions;
  /** The connection, also for other calls to the store. */
  readonly connection: StoreConnection;
  readonly known: KnownCounters;
  readonly storeClock: StoreClock;
  readonly #replicas: Replicas;
  readonly #proofs: Proofs;
  readonly #visits: Visits;
  readonly #leases: StoredLeases;
  readonly #calls: StoreCalls;
  readonly #local: LocalDecisions;
  readonly #failures: Record<FaultKind, number> = {
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
    const { clock, replica, rememberedMax } = options;
    this.connection = (options.openStore ?? openStore)(options.store, {
      silenceMs: SILENT_BUDGETS * options.budgetMs,
      onChange: (ready) => {
        if (!ready) this.#open(this.connection.whyDown());
      },
    });
    this.known = new KnownCounters({
      countersMax: rememberedMax ?? COUNTERS_MAX,
      replica,
    });
    this.storeClock = new StoreClock(clock);
    const { connection, known, storeClock } = this;
    const store = { connection, clock, storeClock, known };
    this.#circuit = new Circuit(clock);
    this.#replicas = new Replicas(clock, replica);
    this.#proofs = new Proofs(store);
    this.#leases = new StoredLeases(connection, known.leases, clock);
    this.#visits = new Visits(store, this.#replicas, options.log);
    this.#calls = new StoreCalls({
      ...store,
      proofs: this.#proofs,
      leases: this.#leases,
      onLost: (checks, unmade, fault) => this.#onLost(checks, unmade, fault),
    });
    this.#local = new LocalDecisions({
      ...store,
      replicas: this.#replicas,
      commit: (owed) => this.#calls.commit(owed),
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
      await within(START_MS, this.connection.connect());
      this.#salt = await this.#heartbeat();
      this.#schedule(HEARTBEAT_MS);
    } catch (error) {
      throwIfRefused(error as Error);
      this.#open(error instanceof StoreFault ? error : this.connection.whyDown());
    }
    return this.#salt;
  }

  knownExhausted(charge: Charge): readonly Violation[] | null {
    return this.known.exhausted(charge, this.#options.clock(), this.storeClock);
  }

  surelyDenies(charge: Charge): boolean {
    return this.knownExhausted(charge) !== null;
  }

  spend(charge: Charge, listener: LimitListener): void {
    if (this.#circuit.isOpen) this.#local.spend(charge, listener);
    else this.#calls.spend(charge, listener);
  }

  conclude(outcomes: readonly Outcome[], isLocal: boolean): void {
    this.#local.conclude(outcomes);
    for (const outcome of outcomes)
      for (const change of changesFor(outcome, isLocal, this.storeClock.now())) this.#make(change);
  }

  release(spent: Spent, position: number): void {
    this.#leases.end(spent, position);
  }

  isProven(credential: Identity): boolean {
    const now = this.#options.clock();
    // During an outage, this process trusts its own knowledge of proofs for longer.
    const since = this.#circuit.isOpen ? now - (PROVEN_MS - PROVEN_LOCALLY_MS) : now;
    return this.known.proofs.isProven(credential, since);
  }

  askProofs(credentials: readonly Identity[]): Promise<void> | null {
    return this.#circuit.isOpen ? null : this.#proofs.ask(credentials);
  }

  isProofFresh(credential: Identity): boolean {
    return this.known.proofs.isFresh(credential, this.#options.clock());
  }

  prove(credential: Identity): void {
    const until = this.#options.clock() + PROVEN_LOCALLY_MS;
    this.known.proofs.prove(credential, until, until);
    this.#proofs.prove(credential);
  }

  visited(client: Identity, rule: VisitRule, network: () => Identity | null): void {
    if (!this.#circuit.isOpen) this.#visits.visited(client, rule, network);
  }

  withdraw(credential: Identity): void {
    this.known.proofs.withdraw(credential);
    this.#proofs.withdraw(credential);
  }

  stats() {
    return {
      /** Number of failed checks, by kind. */
      failures: { ...this.#failures },
      /** Number of requests decided without the store. */
      degraded: this.#local.count,
      available: !this.#circuit.isOpen,
      /** The last time without the store; null if there was none. */
      lastOutage: this.#circuit.lastOutage,
      outages: this.#circuit.outages,
      replicas: this.#replicas.count,
      /** Number of remembered counters and credentials. */
      remembered: this.known.size,
    };
  }

  async close(): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#timer);
    this.#leases.flush();
    this.#calls.flush();
    this.#proofs.flush();
    this.#visits.flush();
    if (this.connection.ready)
      await within(this.#options.budgetMs, this.#replicas.leave(this.connection)).catch(() => undefined);
    this.connection.close();
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
      if (this.#circuit.isOpen) await this.#recover();
      else this.#leases.renewDue();
      this.#schedule(HEARTBEAT_MS);
    } catch (error) {
      if (this.#closed) return;
      if (!this.#circuit.isOpen) this.#open(error as StoreFault);
      else if (this.connection.ready) this.#circuit.probeFailed();
      this.#schedule(this.#circuit.probeMs);
    }
  }

  /** @returns the salt that the replicas share */
  async #heartbeat(): Promise<string> {
    const { histories } = this.#options;
    const inUse = histories?.inUse() ?? null;
    const heartbeat = await this.#replicas.beat(this.connection, this.#salt, inUse);
    const { salt, historySince, storeNow, askedAt, heardAt } = heartbeat;
    const change = this.storeClock.noteHeartbeat(storeNow, askedAt, heardAt);
    if (change.kind === 'first') this.#local.moveTimes(change.aheadMs);
    else if (change.kind === 'jump') this.known.forgetCounters();
    if (inUse !== null && historySince !== null) histories?.hear(inUse.name, historySince);
    if (heartbeat.hasLost) this.known.noteLoss(heardAt);
    // Histories are found by digests, and these change with the salt.
    if (salt === this.#salt) void this.#visits.restore();
    return salt;
  }

  /** Learns the first day of histories before the first request. Never rejects. */
  async learnHistories(): Promise<void> {
    if (!this.#circuit.isOpen) await this.#heartbeat().catch(() => undefined);
  }

  #adopt(salt: string): void {
    if (salt === this.#salt) return;
    this.#salt = salt;
    this.known.histories.clear();
    this.#options.onSalt(salt);
  }

  #onLost(checks: readonly PendingCheck[], unmade: readonly Adjustment[], fault: StoreFault): void {
    for (const one of unmade) this.#local.owe(one);
    for (const { listeners } of checks) this.#failures[fault.kind] += listeners.length;
    this.#open(fault);
    for (const { charge, listeners } of checks)
      for (const listener of listeners) this.#local.spend(charge, listener);
  }

  #make(change: Adjustment): void {
    if (change.amount === 0) return;
    if (this.#circuit.isOpen) this.#local.owe(change);
    else this.#calls.adjust(change);
  }

  #open(fault: StoreFault): void {
    if (this.#closed || !this.#circuit.open()) return;
    this.#degradedBefore = this.#local.count;
    this.#options.log.warn(
      { failure: fault.kind, cause: fault.message, replicas: this.#replicas.count },
      'the store is unavailable; each policy decides by its onStoreFailure until it is back',
    );
    this.#schedule(this.#circuit.probeMs);
    this.#calls.giveUp(fault);
  }

  /** @throws if the store fails again before all is charged */
  async #recover(): Promise<void> {
    await this.#local.commit();
    if (this.#replicas.count > 1) {
      await new Promise((resolve) => setTimeout(resolve, SETTLE_MS));
    }
    this.#leases.flush();
    const startedAt = this.#options.clock();
    // Requests are decided locally until the circuit closes, so there may be more to commit after each answer.
    do {
      await this.#local.commit();
      await this.#leases.renew(startedAt);
    } while (!this.#local.isSettled);
    if (!this.#circuit.isOpen || this.#closed) return;
    const outageMs = Math.round(this.#circuit.close());
    this.#options.log.info(
      { outageMs, decidedWithoutStore: this.#local.count - this.#degradedBefore },
      'the store is available again',
    );
  }
}
