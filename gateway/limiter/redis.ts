/**
 * The shared store: Redis or Valkey, used by the gateway only.
 *
 * All charges of one tick are one script call. So under load Redis executes one command for many requests, and every
 * decision stays exact. There is no offline queue, and nothing is sent twice. If a call fails, or is not answered for too
 * long (patience.ts), all waiting checks are reported as failed, and `outage.ts` decides the requests. Of a later reply
 * nothing is used; only the places in flight that it took are given back.
 */
import type { StoreAccess } from '#gateway/store/access.ts';
import type { StoreConnection } from '#gateway/store/connection.ts';
import { StoreFault } from '#gateway/store/fault.ts';
import { openStore } from '#gateway/store/open.ts';
import type { Clock, Millis } from '#shared/clock.ts';
import { within } from '#shared/within.ts';
import type { Charge } from './charge.ts';
import { type Adjustment, type PendingCheck, UnreadableReplyError } from './check.ts';
import type { KnownCounters } from './known-counters.ts';
import { leasesOf } from './leases.ts';
import type { LimitListener, Spent } from './limiter.ts';
import { NewClients, type VisitsLog } from './new-clients.ts';
import { Patience, type StoreFailure, waitMsMax } from './patience.ts';
import { Proofs } from './proofs.ts';
import {
  HEARTBEAT,
  type Heartbeat,
  historySinceKey,
  type KeptHistories,
  LEAVE,
  REPLICAS_KEY,
  SALT_KEY,
  SALT_SINCE_KEY,
} from './replicas.ts';
import type { GiveBack } from './steps.ts';
import { type AdjustmentCall, adjust, callsFor, decide, type StoreCall } from './store-calls.ts';
import type { StoreClock } from './store-clock.ts';
import { StoredLeases } from './stored-leases.ts';
import { Visits } from './visits.ts';

interface RedisStoreOptions {
  readonly openStore?: typeof openStore | undefined;
  readonly clock: Clock;
  readonly storeClock: StoreClock;
  readonly known: KnownCounters;
  /** A call without an answer for ten times this, and at most eleven times, counts as lost. */
  readonly budgetMs: Millis;
  /** Name of this process among the replicas. */
  readonly replica: string;
  readonly log: VisitsLog;
  /** Called once for each failed call of the store, with all checks of the call. */
  readonly onFailure: (checks: readonly PendingCheck[], failure: StoreFailure, cause: Error) => void;
  /** Called with charges that may not have reached the store. */
  readonly onUnmade: (charges: readonly Adjustment[], failure: StoreFailure, cause: Error) => void;
  /** Called when the connection is lost, even without a pending call. */
  readonly onDisconnected: (cause: Error) => void;
}

/** A connection with pending calls is dead after this time without any data, even if it is still open. */
const SILENCE_MS_MAX: Millis = 2000;

export class RedisStore {
  readonly #options: RedisStoreOptions;
  readonly #connection: StoreConnection;
  readonly #patience: Patience;
  readonly proofs: Proofs;
  readonly visits: Visits;
  readonly leases: StoredLeases;
  readonly #giveBack: GiveBack = {
    adjust: (adjustment) => this.adjust(adjustment),
    release: (lease) => this.leases.release(lease),
  };
  #pending = new Map<string, PendingCheck>();
  #adjustments: Adjustment[] = [];
  #isClosing = false;
  /** The last answer to a heartbeat. */
  #lastBeat: Heartbeat | null = null;

  constructor(access: StoreAccess, options: RedisStoreOptions) {
    this.#options = options;
    this.#patience = new Patience(options.budgetMs);
    this.#connection = (options.openStore ?? openStore)(access, {
      // A connection is not silent for too long while its calls may still wait.
      silenceMs: Math.max(SILENCE_MS_MAX, 2 * waitMsMax(options.budgetMs)),
      onChange: (ready) => {
        if (!ready && !this.#isClosing) options.onDisconnected(this.#connection.whyDown());
      },
    });
    const { clock, known, budgetMs } = options;
    this.proofs = new Proofs({ connection: this.#connection, clock, known, answerMs: waitMsMax(budgetMs) });
    this.visits = new Visits({
      connection: this.#connection,
      clock,
      storeNow: options.storeClock.now,
      known,
      newClients: new NewClients(options.log),
      limiter: this,
    });
    this.leases = new StoredLeases(this.#connection, options.known.leases, options.clock);
  }

  get ready(): boolean {
    return this.#connection.ready;
  }

  /** The connection, for other calls to the store. */
  get connection(): StoreConnection {
    return this.#connection;
  }

  /** @throws the reason why the store is unreachable; connecting continues in the background */
  connect(): Promise<void> {
    return this.#connection.connect();
  }

  spend(charge: Charge, listener: LimitListener): void {
    const pending = this.#pending;
    const check = pending.get(charge.id);
    if (check !== undefined) {
      check.listeners.push(listener);
      return;
    }
    const leases = charge.hasLeases ? this.#options.known.leases.nextName() : null;
    pending.set(charge.id, { charge, listeners: [listener], leases });
    if (pending.size === 1) setImmediate(() => this.#flush());
  }

  /** Gives up all waiting calls, because the store is lost. */
  giveUp(failure: StoreFailure, cause: Error): void {
    this.#patience.giveUp(failure, cause);
  }

  /** Charges at once. There is no time budget, because a charge that arrives late would be repeated. */
  commit(owed: readonly Adjustment[]): readonly AdjustmentCall[] {
    return adjust(this.#connection, this.#options.storeClock.now(), owed);
  }

  /**
   * Collects the adjustments of one tick into one call. If returned units are lost, they stay charged until the window
   * ends.
   */
  adjust(adjustment: Adjustment): void {
    if (this.#adjustments.push(adjustment) === 1) setImmediate(() => this.#flushAdjustments());
  }

  #flushAdjustments(): void {
    const adjustments = this.#adjustments;
    this.#adjustments = [];
    for (const { some, made } of this.commit(adjustments))
      made.catch((error: Error) => {
        this.#options.onUnmade(
          some.filter(({ amount }) => amount > 0),
          failureOf(error),
          error,
        );
      });
  }

  /**
   * Reports to the store that this replica is alive. The script writes, so its success shows that checks can be made.
   * @param salt stored if there is none yet; '' if the salt is configured and not in the store
   * @param histories null if no policy needs them
   * @throws the reason why the store does not answer in time
   */
  async heartbeat(salt: string, histories: KeptHistories | null = null): Promise<Heartbeat> {
    const { clock, replica } = this.#options;
    const askedAt = clock();
    const known = this.#lastBeat?.salt === salt ? this.#lastBeat.saltSince : null;
    const reply = await this.#inTime(
      this.#connection.run(
        HEARTBEAT,
        [REPLICAS_KEY, SALT_KEY, historySinceKey(histories?.name ?? ''), SALT_SINCE_KEY],
        [replica, salt, ...[histories?.keptMs, histories?.since, known].map((one) => String(one ?? ''))],
      ),
    );
    const [replicas, rank, shared, now, since, beatAt, saltSince]: unknown[] = Array.isArray(reply)
      ? reply
      : [];
    if (!isWhole(replicas) || !isWhole(rank) || typeof shared !== 'string')
      throw new UnreadableReplyError('the store sent a reply that cannot be read');
    const heardAt = clock();
    const historySince = histories === null ? null : Number(since);
    const lastBeatAt = Math.floor((this.#lastBeat?.storeNow ?? 0) / 1000);
    this.#lastBeat = {
      replicas,
      rank,
      salt: shared,
      saltSince: Number(saltSince),
      historySince,
      hasLost: Number(beatAt) < lastBeatAt,
      storeNow: Number(now),
      askedAt,
      heardAt,
    };
    return this.#lastBeat;
  }

  /** @throws after the time that a check waits. Only time in which this process ran is counted. */
  #inTime(call: Promise<unknown>): Promise<unknown> {
    return new Promise((resolve, reject) => {
      const wait = this.#patience.begin((_failure, cause) => reject(cause));
      call.then(resolve, reject).finally(() => this.#patience.end(wait));
    });
  }

  async close(): Promise<void> {
    this.#isClosing = true;
    this.leases.flush();
    this.#flushAdjustments();
    this.proofs.flush();
    this.visits.flush();
    if (this.ready) {
      const { budgetMs, replica } = this.#options;
      await within(budgetMs, this.#connection.run(LEAVE, [REPLICAS_KEY], [replica])).catch(ignored);
    }
    this.#connection.close();
  }

  #flush(): void {
    this.proofs.flush();
    const pending = this.#pending;
    this.#pending = new Map();
    for (const call of callsFor(pending.values(), (key) => this.#connection.slotOf(key))) this.#ask(call);
  }

  /** Records the leases before the requests are answered, because any of them may give its lease back at once. */
  #hold(spent: Spent): void {
    const { known, clock } = this.#options;
    const now = clock();
    for (let i = 0; i < spent.admitted; i++)
      for (const lease of leasesOf(spent, i)) known.leases.take(lease, now);
  }

  #ask(call: StoreCall): void {
    const { clock, known, storeClock, onFailure } = this.#options;
    const { checks } = call;
    const askedAt = clock();
    let isGivenUp = false;
    const wait = this.#patience.begin((failure, cause) => {
      isGivenUp = true;
      onFailure(checks, failure, cause);
    });
    decide(this.#connection, storeClock.now(), call, this.#giveBack).then(
      (answers) => {
        this.#patience.end(wait);
        if (isGivenUp) {
          this.leases.endUnanswered(checks);
          return;
        }
        const heardAt = clock();
        for (const answer of answers) {
          for (const state of answer.spent.states)
            if (state !== null) storeClock.note(state.state.at, askedAt, heardAt);
          known.learn(answer, askedAt, heardAt);
        }
        for (const { check, spent } of answers) {
          if (spent.leases !== null) this.#hold(spent);
          for (let i = 0; i < check.listeners.length; i++) check.listeners[i]?.onSpent(spent, i);
        }
      },
      (error: Error) => {
        this.#patience.end(wait);
        // The store may have executed these checks all the same.
        this.leases.endUnanswered(checks);
        if (!isGivenUp) onFailure(checks, failureOf(error), error);
      },
    );
  }
}

function failureOf(error: Error): StoreFailure {
  return error instanceof StoreFault ? error.kind : 'error';
}

function isWhole(value: unknown): value is number {
  return Number.isSafeInteger(value);
}

/** Ignores an error whose consequence the next attempt or the expiry in the store repairs. */
function ignored(): void {}
