/**
 * Asks the store about charges, and changes its counters.
 *
 * All charges of one tick are one script call, so under load Redis executes one command for many requests, and every
 * decision stays exact. In a Cluster all keys of a call must have the same slot; a charge with several slots is decided in
 * steps (steps.ts). Nothing is queued while the store is away, and nothing is sent twice. Once the store counts as lost, no
 * answer to an earlier call is used; only the places in flight that it took are given back.
 */
import { inCalls, type StoreConnection } from '#gateway/store/connection.ts';
import type { StoreFault } from '#gateway/store/fault.ts';
import type { Millis } from '#shared/clock.ts';
import { type Bucket, type Charge, proofKey } from './charge.ts';
import { type Adjustment, type Answer, keysOf, readReply, scriptCall } from './check.ts';
import { type Lease, leasesOf, type StoredLeases } from './leases.ts';
import type { LimitListener, PendingCheck, Spent } from './limiter.ts';
import type { Proofs } from './proofs.ts';
import { SPEND } from './script.ts';
import type { SharedStore } from './shared-store.ts';
import { decideInSteps } from './steps.ts';

interface StoreCallsOptions extends SharedStore {
  readonly proofs: Proofs;
  readonly leases: StoredLeases;
  /**
   * Called once for each call without an answer.
   *
   * @param checks are not decided
   * @param unmade charges that may not have reached the store
   */
  readonly onLost: (
    checks: readonly PendingCheck[],
    unmade: readonly Adjustment[],
    fault: StoreFault,
  ) => void;
}

export class StoreCalls {
  readonly #options: StoreCallsOptions;
  /** Checks of this tick, by the id of their charge. */
  #pending = new Map<string, PendingCheck>();
  /** Adjustments of this tick. */
  #adjustments: Adjustment[] = [];
  /** Calls that wait for their answers. */
  readonly #waiting = new Set<readonly PendingCheck[]>();

  constructor(options: StoreCallsOptions) {
    this.#options = options;
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
    if (pending.size === 1) setImmediate(() => this.#flushChecks());
  }

  /** If returned units are lost, they stay charged until the window ends. */
  readonly adjust = (adjustment: Adjustment): void => {
    if (this.#adjustments.push(adjustment) === 1) setImmediate(() => this.flush());
  };

  /** Sends what is to be changed. */
  flush(): void {
    const adjustments = this.#adjustments;
    this.#adjustments = [];
    for (const { some, made } of this.commit(adjustments))
      made.catch((fault: StoreFault) => {
        const unmade = some.filter(({ amount }) => amount > 0);
        this.#options.onLost([], unmade, fault);
      });
  }

  /** Changes counters at once, with one call for each slot. @returns the adjustments of each call, and its end */
  commit(owed: readonly Adjustment[]) {
    const { connection, storeClock } = this.#options;
    return inCalls(connection, owed, ({ bucket }) => bucket.key).map((some) => {
      const { keys, args } = scriptCall(storeClock.now(), [], some);
      return { some, made: connection.run(SPEND, keys, args) };
    });
  }

  /** Gives up all waiting calls, because the store is lost. */
  giveUp(fault: StoreFault): void {
    const calls = [...this.#waiting];
    this.#waiting.clear();
    for (const checks of calls) this.#options.onLost(checks, [], fault);
  }

  #flushChecks(): void {
    const { proofs, connection } = this.#options;
    // A call sees the proofs that were reported before it.
    proofs.flush();
    const pending = this.#pending;
    this.#pending = new Map();
    const together: PendingCheck[] = [];
    for (const check of pending.values())
      if (isOneCall(check, connection)) together.push(check);
      else this.#ask([check], () => this.#decideInSteps(check));
    for (const some of inCalls(connection, together, ({ charge }) => charge.buckets[0]?.key ?? '', keysOf))
      this.#ask(some, () => this.#decide(some));
  }

  #ask(checks: readonly PendingCheck[], decide: () => Promise<readonly Answer[]>): void {
    const { clock, leases, onLost } = this.#options;
    const askedAt = clock();
    this.#waiting.add(checks);
    decide().then(
      (answers) => {
        if (this.#waiting.delete(checks)) this.#tell(answers, askedAt);
        else leases.endUnanswered(checks);
      },
      (fault: StoreFault) => {
        // The store may have executed these checks all the same.
        leases.endUnanswered(checks);
        if (this.#waiting.delete(checks)) onLost(checks, [], fault);
      },
    );
  }

  #tell(answers: readonly Answer[], askedAt: Millis): void {
    const { clock, known, storeClock } = this.#options;
    const heardAt = clock();
    for (const answer of answers) {
      for (const state of answer.spent.states)
        if (state !== null) storeClock.note(state.state.at, askedAt, heardAt);
      known.learn(answer, askedAt, heardAt);
    }
    for (const { check, spent } of answers) {
      if (spent.leases !== null) this.#hold(spent, heardAt);
      for (let i = 0; i < check.listeners.length; i++) check.listeners[i]?.onSpent(spent, i);
    }
  }

  /** @throws StoreFault */
  async #decide(checks: readonly PendingCheck[]): Promise<readonly Answer[]> {
    const { connection, storeClock } = this.#options;
    const { keys, args } = scriptCall(storeClock.now(), checks);
    return readReply(await connection.run(SPEND, keys, args), checks);
  }

  /** @throws StoreFault */
  async #decideInSteps(check: PendingCheck): Promise<readonly Answer[]> {
    const { connection, storeClock, proofs, known, clock, leases } = this.#options;
    const storeNow = storeClock.now();
    await proofs.ask(check.charge.buckets.flatMap(({ unlessProven }) => unlessProven));
    const now = clock();
    const isProven = ({ unlessProven }: Bucket): boolean =>
      unlessProven.some((one) => known.proofs.isProven(one, now));
    const giveBack = { adjust: this.adjust, release: (lease: Lease) => leases.release(lease) };
    return [await decideInSteps(connection, storeNow, check, isProven, giveBack)];
  }

  /** Records the leases before the requests are answered, because any of them may give its lease back at once. */
  #hold(spent: Spent, now: Millis): void {
    const { leases } = this.#options.known;
    for (let i = 0; i < spent.admitted; i++) for (const lease of leasesOf(spent, i)) leases.take(lease, now);
  }
}

/** Whether all keys of a check share a slot. */
function isOneCall({ charge: { buckets } }: PendingCheck, connection: StoreConnection): boolean {
  const slot = connection.slotOf(buckets[0]?.key ?? '');
  const isThere = (key: string): boolean => connection.slotOf(key) === slot;
  return (
    slot === null ||
    buckets.every(({ key, unlessProven }) => isThere(key) && unlessProven.map(proofKey).every(isThere))
  );
}
