/**
 * The shared store: Redis or Valkey, of the gateway's own.
 *
 * All charges of one tick of the event loop go out as one script, so under load Redis sees one command for many requests
 * while every decision stays exact. There is no offline queue and nothing is sent twice: when the store does not answer for
 * too long (patience.ts), all checks that wait are reported as failed, and `outage.ts` decides what then happens to the
 * requests. From a reply that comes later only what it charged is learned.
 */
import type { StoreAccess } from '#gateway/store/access.ts';
import type { StoreConnection } from '#gateway/store/connection.ts';
import type { FaultKind, StoreFault } from '#gateway/store/fault.ts';
import { openStore } from '#gateway/store/open.ts';
import type { Clock, Millis } from '#shared/clock.ts';
import { within } from '#shared/within.ts';
import type { Charge } from './charge.ts';
import { type Adjustment, type Answer, type PendingCheck, UnreadableReplyError } from './check.ts';
import { graceMs, waitMsMax } from './check-budget.ts';
import type { KnownCounters } from './known-counters.ts';
import { leasesOf } from './leases.ts';
import type { LimitListener, Spent } from './limiter.ts';
import { Patience } from './patience.ts';
import { Proofs } from './proofs.ts';
import { HEARTBEAT, type Heartbeat, LEAVE, REPLICAS_KEY, SALT_KEY } from './replicas.ts';
import type { GiveBack } from './steps.ts';
import { type AdjustmentCall, adjust, callsFor, decide, type StoreCall } from './store-calls.ts';
import type { StoreClock } from './store-clock.ts';
import { StoredLeases } from './stored-leases.ts';

export type StoreFailure = 'timeout' | FaultKind;

interface RedisStoreOptions {
  readonly openStore?: typeof openStore | undefined;
  readonly clock: Clock;
  readonly storeClock: StoreClock;
  readonly known: KnownCounters;
  /** The smallest time budget of a check; it grows while the store is slow. */
  readonly budgetMs: Millis;
  /** Name of this process among the replicas. */
  readonly replica: string;
  /** Checks could not be made. Called once per call of the store, with everyone who waits for its answer. */
  readonly onFailure: (checks: readonly PendingCheck[], failure: StoreFailure, cause: Error) => void;
  readonly onSuccess: () => void;
  /** Checks that were reported as failed have been made after all. */
  readonly onLateAnswers: (answers: readonly Answer[]) => void;
  /** Changes that did not reach the store. */
  readonly onUnmade: (adjustments: readonly Adjustment[]) => void;
  /** The connection is lost, also when nothing was being asked. */
  readonly onDisconnected: (cause: Error) => void;
}

/** A connection on which nothing comes for so long while something is asked is dead, even if nobody has closed it. */
const SILENCE_MS_MAX: Millis = 2000;

export class RedisStore {
  readonly #options: RedisStoreOptions;
  readonly #connection: StoreConnection;
  readonly #patience: Patience;
  readonly proofs: Proofs;
  readonly leases: StoredLeases;
  readonly #giveBack: GiveBack = {
    adjust: (adjustment) => this.adjust(adjustment),
    release: (lease) => this.leases.release(lease),
  };
  #pending = new Map<string, PendingCheck>();
  #adjustments: Adjustment[] = [];
  /** Calls that were given up and may still be answered. */
  #late = 0;
  #isClosing = false;

  constructor(access: StoreAccess, options: RedisStoreOptions) {
    this.#options = options;
    this.#patience = new Patience(options.clock, options.budgetMs);
    this.#connection = (options.openStore ?? openStore)(access, {
      // An answer that comes after the store was given up still says what it charged.
      silenceMs: Math.max(SILENCE_MS_MAX, 2 * waitMsMax(options.budgetMs)),
      onChange: (ready) => {
        if (!ready && !this.#isClosing) options.onDisconnected(this.#connection.whyDown());
      },
    });
    const { clock, known, budgetMs } = options;
    this.proofs = new Proofs({ connection: this.#connection, clock, known, answerMs: graceMs(budgetMs) });
    this.leases = new StoredLeases(this.#connection, options.known.leases, options.clock);
  }

  get ready(): boolean {
    return this.#connection.ready;
  }

  /** For what else is asked of the store. */
  get connection(): StoreConnection {
    return this.#connection;
  }

  /** Given up and perhaps still on their way: what they charge is not known yet. */
  get lateCalls(): number {
    return this.#late;
  }

  /** @throws the reason why the store cannot be reached; connecting goes on in the background */
  connect(): Promise<void> {
    return this.#connection.connect();
  }

  spend(charge: Charge, listener: LimitListener): void {
    if (!this.ready) {
      this.#options.onFailure(
        [{ charge, listeners: [listener], leases: null }],
        'disconnected',
        this.#connection.whyDown(),
      );
      return;
    }
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

  /** The store is lost: nobody waits for its answers any more. */
  giveUp(): void {
    this.#patience.giveUp();
  }

  /** Charges at once. There is no time budget: what is charged late would otherwise be charged again. */
  commit(uncommitted: readonly Adjustment[]): readonly AdjustmentCall[] {
    return adjust(this.#connection, this.#options.storeClock.now(), uncommitted);
  }

  /** Those of one tick go out together. What is given back and lost on its way stays charged until its window ends. */
  adjust(adjustment: Adjustment): void {
    if (this.#adjustments.push(adjustment) === 1) setImmediate(() => this.#flushAdjustments());
  }

  #flushAdjustments(): void {
    const adjustments = this.#adjustments;
    this.#adjustments = [];
    if (adjustments.length === 0) return;
    if (!this.ready) {
      this.#options.onUnmade(adjustments);
      return;
    }
    const storeNow = this.#options.storeClock.now();
    for (const { some, made } of adjust(this.#connection, storeNow, adjustments))
      made.catch(() => this.#options.onUnmade(some.filter(({ amount }) => amount > 0)));
  }

  /**
   * Reports to the store that this replica lives. The script writes, so its success shows that checks can be made.
   *
   * @param salt kept there when none is kept yet; '' when the salt is configured and none of the store's business
   * @throws what keeps the store from answering, or from answering in time
   */
  async heartbeat(salt: string): Promise<Heartbeat> {
    const { clock, replica, budgetMs } = this.#options;
    const askedAt = clock();
    const reply = await within(
      graceMs(budgetMs),
      this.#connection.run(HEARTBEAT, [REPLICAS_KEY, SALT_KEY], [replica, salt]),
    );
    const [replicas, rank, shared, now]: unknown[] = Array.isArray(reply) ? reply : [];
    if (!isWhole(replicas) || !isWhole(rank) || typeof shared !== 'string')
      throw new UnreadableReplyError('the store sent a reply that cannot be read');
    const heardAt = clock();
    return { replicas, rank, salt: shared, storeNow: Number(now), askedAt, heardAt };
  }

  async close(): Promise<void> {
    this.#isClosing = true;
    this.leases.flush();
    this.#flushAdjustments();
    this.proofs.flush();
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

  /** Remembers the leases before the requests are answered, as any of them may give its lease back at once. */
  #hold(spent: Spent): void {
    const { known, clock } = this.#options;
    const now = clock();
    for (let i = 0; i < spent.admitted; i++)
      for (const lease of leasesOf(spent, i)) known.leases.take(lease, now);
  }

  #ask(call: StoreCall): void {
    const { clock, known, storeClock, onFailure, onSuccess, onLateAnswers } = this.#options;
    const { checks } = call;
    const askedAt = clock();
    let isLate = false;
    const wait = this.#patience.begin(() => {
      isLate = true;
      this.#late++;
      onFailure(checks, 'timeout', new Error(`no answer within ${this.#patience.waitMs} ms`));
    });
    decide(this.#connection, storeClock.now(), call, () => isLate, this.#giveBack).then(
      (answers) => {
        this.#patience.answered(wait);
        if (isLate) this.#late--;
        const heardAt = clock();
        for (const answer of answers) {
          for (const state of answer.spent.states)
            if (state !== null) storeClock.note(state.state.at, askedAt, heardAt);
          known.learn(answer, askedAt, heardAt);
        }
        if (isLate) onLateAnswers(answers);
        else {
          onSuccess();
          for (const { check, spent } of answers) {
            if (spent.leases !== null) this.#hold(spent);
            for (let i = 0; i < check.listeners.length; i++) check.listeners[i]?.onSpent(spent, i);
          }
        }
      },
      (error: Error | StoreFault) => {
        this.#patience.failed(wait);
        if (isLate) this.#late--;
        // Nobody knows whether they were made.
        if ('kind' in error && error.kind === 'disconnected') this.leases.endUnanswered(checks);
        if (isLate) onLateAnswers([]);
        else onFailure(checks, 'kind' in error ? error.kind : 'error', error);
      },
    );
  }
}

function isWhole(value: unknown): value is number {
  return Number.isSafeInteger(value);
}

/** For what may fail without consequence: the next attempt or the store's own expiry repairs it. */
function ignored(): void {}
