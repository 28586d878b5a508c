/**
 * The shared store: Redis or Valkey, of the gateway's own.
 *
 * All charges of one turn of the event loop go out as one script, so under load Redis sees one command for many
 * requests while every decision stays exact. There is no offline queue and nothing is sent twice: when the store does
 * not answer for too long (patience.ts), all checks that wait are reported as failed, and `outage.ts` decides what then
 * happens to the requests. From a reply that comes later only what it charged is learned. In a Cluster one script goes
 * out for each slot, and a charge whose keys lie in several is decided in steps (steps.ts).
 */
import type { Identity } from '#gateway/identity/digest.ts';
import type { StoreAccess } from '#gateway/store/access.ts';
import type { StoreConnection, StoreScript } from '#gateway/store/connection.ts';
import type { FaultKind, StoreFault } from '#gateway/store/fault.ts';
import { openStore } from '#gateway/store/open.ts';
import type { Clock, Millis } from '#shared/clock.ts';
import { within } from '#shared/within.ts';
import type { Charge } from './charge.ts';
import {
  type Answer,
  keysOf,
  type PendingCheck,
  type ScriptCall,
  scriptCall,
  UnreadableReplyError,
} from './check.ts';
import { graceMs, waitMsMax } from './check-budget.ts';
import { type CheckKind, GENERAL, PLAIN } from './check-kinds.ts';
import { type GivenBack, generalCall, giveBackCall, type LevelDebt } from './general-check.ts';
import { GIVE_BACK_GENERAL, SPEND_GENERAL } from './general-script.ts';
import type { KnownCounters } from './known-counters.ts';
import { learn } from './learn.ts';
import { leasesOf } from './leases.ts';
import type { LimitListener, Spent } from './limiter.ts';
import type { Debt } from './owed.ts';
import { Patience } from './patience.ts';
import { Proofs } from './proofs.ts';
import { HEARTBEAT, type Heartbeat, LEAVE, REPLICAS_KEY, SALT_KEY } from './replicas.ts';
import { SPEND } from './spend-script.ts';
import { decideInSteps, isOneSlot, type StepDialect } from './steps.ts';

export type StoreFailure = 'timeout' | FaultKind;

export interface RedisStoreOptions {
  readonly openStore?: typeof openStore | undefined;
  readonly clock: Clock;
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
  /** Their connection broke before the answer: nobody knows whether they were made. */
  readonly onUnanswered: (checks: readonly PendingCheck[]) => void;
  /** The connection is lost, also when nothing was being asked. */
  readonly onDisconnected: (cause: Error) => void;
}

/** Redis runs one script at a time: more keys than this are split, so that none holds it for long. */
export const KEYS_PER_SCRIPT_MAX = 200;
/** A connection on which nothing comes for so long while something is asked is dead, even if nobody has closed it. */
const SILENCE_MS_MAX: Millis = 2000;

export class RedisStore {
  readonly #options: RedisStoreOptions;
  readonly #connection: StoreConnection;
  readonly #patience: Patience;
  readonly #proofs: Proofs;
  #pending = new Map<string, PendingCheck>();
  #given: GivenBack[] = [];
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
    this.#proofs = new Proofs(this.#connection);
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

  /**
   * Charges what was admitted without the store, and takes it out of `debts`. There is no time budget: what is charged
   * late would otherwise be charged again.
   *
   * @throws what keeps the store from answering; what remains is not known to be charged
   */
  settle(debts: Debt[]): Promise<void> {
    return this.#settle(
      debts,
      ({ key }) => key,
      SPEND,
      (same) => scriptCall([], same),
    );
  }

  /** The same for counters that are no fixed windows. */
  settleLevels(debts: LevelDebt[]): Promise<void> {
    return this.#settle(
      debts,
      ({ part }) => part.key,
      SPEND_GENERAL,
      (same) => generalCall([], same),
    );
  }

  async #settle<D>(
    debts: D[],
    keyOf: (debt: D) => string,
    script: StoreScript,
    callOf: (debts: readonly D[]) => ScriptCall,
  ): Promise<void> {
    const slots = Map.groupBy(debts.splice(0), (debt) => this.#connection.slotOf(keyOf(debt)));
    let failure: unknown;
    await Promise.all(
      [...slots.values()].map(async (same) => {
        const { keys, args } = callOf(same);
        try {
          await this.#connection.run(script, keys, args);
        } catch (error) {
          failure ??= error;
          debts.push(...same);
        }
      }),
    );
    if (debts.length > 0) throw failure;
  }

  /** Those of one turn of the event loop go out together. Lost on its way, it stays charged until its window ends. */
  giveBack(given: GivenBack): void {
    if (this.#given.push(given) === 1) setImmediate(() => this.#flushGiven());
  }

  #flushGiven(): void {
    const given = this.#given;
    this.#given = [];
    const slots = Map.groupBy(given, ({ part }) => this.#connection.slotOf(part.key));
    for (const same of slots.values()) {
      for (let at = 0; at < same.length && this.ready; at += KEYS_PER_SCRIPT_MAX) {
        const { keys, args } = giveBackCall(same.slice(at, at + KEYS_PER_SCRIPT_MAX));
        this.#connection.run(GIVE_BACK_GENERAL, keys, args).catch(ignored);
      }
    }
  }

  prove(credential: Identity): void {
    this.#proofs.prove(credential);
  }

  withdraw(credential: Identity): void {
    this.#proofs.withdraw(credential);
  }

  /**
   * Tells the store that this replica lives. It is a script that writes, so it also tells whether checks can be made.
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
    const aheadMs = Number(now) - (askedAt + heardAt) / 2;
    return { replicas, rank, salt: shared, aheadMs, tookMs: heardAt - askedAt };
  }

  async close(): Promise<void> {
    this.#isClosing = true;
    this.#flushGiven();
    this.#proofs.flush();
    if (this.ready) {
      const { budgetMs, replica } = this.#options;
      await within(budgetMs, this.#connection.run(LEAVE, [REPLICAS_KEY], [replica])).catch(ignored);
    }
    this.#connection.close();
  }

  #flush(): void {
    this.#proofs.flush();
    const pending = this.#pending;
    this.#pending = new Map();
    const others = this.#askAll(pending.values(), PLAIN);
    if (others !== null) this.#askAll(others, GENERAL);
  }

  /** Slot by slot. @returns the checks of the other kind; null: there are none */
  #askAll(checks: Iterable<PendingCheck>, kind: CheckKind): readonly PendingCheck[] | null {
    const slotOf = (key: string): number | null => this.#connection.slotOf(key);
    const bySlot = new Map<number | null, PendingCheck[]>();
    let others: PendingCheck[] | null = null;
    for (const check of checks) {
      if (check.charge.isPlain !== kind.isPlain) {
        others ??= [];
        others.push(check);
        continue;
      }
      const [first] = check.charge.parts;
      const slot = first === undefined ? null : slotOf(first.key);
      if (slot !== null && !isOneSlot(check.charge, slotOf)) {
        this.#askInSteps(check, kind.steps);
        continue;
      }
      const same = bySlot.get(slot);
      if (same === undefined) bySlot.set(slot, [check]);
      else same.push(check);
    }
    for (const same of bySlot.values()) this.#askInParts(same, kind);
    return others;
  }

  /** As many calls as their number of keys needs. */
  #askInParts(all: readonly PendingCheck[], kind: CheckKind): void {
    let checks: PendingCheck[] = [];
    let keys = 0;
    for (const check of all) {
      const need = keysOf(check.charge);
      if (keys > 0 && keys + need > KEYS_PER_SCRIPT_MAX) {
        this.#ask(checks, kind);
        checks = [];
        keys = 0;
      }
      keys += need;
      checks.push(check);
    }
    this.#ask(checks, kind);
  }

  #ask(checks: readonly PendingCheck[], { script, callOf, read }: CheckKind): void {
    const { keys, args } = callOf(checks);
    this.#await(checks, () =>
      this.#connection.run(script, keys, args).then((reply) => read(reply, checks).answers),
    );
  }

  /** Known here from before anybody is told, as any of them may give it back at once. */
  #hold(spent: Spent): void {
    const { known, clock } = this.#options;
    const now = clock();
    for (let i = 0; i < spent.admitted; i++)
      for (const lease of leasesOf(spent, i)) known.leases.take(lease, now);
  }

  #askInSteps(check: PendingCheck, dialect: StepDialect): void {
    this.#await([check], async (isLate) => [await decideInSteps(this.#connection, check, dialect, isLate)]);
  }

  /** @param decide is told whether its answer comes too late by now */
  #await(
    checks: readonly PendingCheck[],
    decide: (isLate: () => boolean) => Promise<readonly Answer[]>,
  ): void {
    const { clock, known, onFailure, onSuccess, onLateAnswers } = this.#options;
    const askedAt = clock();
    let isLate = false;
    const wait = this.#patience.begin(() => {
      isLate = true;
      this.#late++;
      onFailure(checks, 'timeout', new Error(`no answer within ${this.#patience.waitMs} ms`));
    });
    decide(() => isLate).then(
      (answers) => {
        this.#patience.answered(wait);
        if (isLate) this.#late--;
        learn(known, answers, askedAt, clock());
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
        if ('kind' in error && error.kind === 'disconnected') this.#options.onUnanswered(checks);
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
