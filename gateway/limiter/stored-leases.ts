/**
 * What the store hears of this process's leases once they are taken: that they are still held, and that they are given back.
 * Neither keeps a request waiting: what the store does not hear ends by itself.
 */
import type { StoreConnection } from '#gateway/store/connection.ts';
import type { Clock, Millis } from '#shared/clock.ts';
import { within } from '#shared/within.ts';
import type { PendingCheck } from './check.ts';
import { LEASES_PER_SCRIPT_MAX, leaseCall, RELEASE, RENEW } from './lease-scripts.ts';
import { type HeldLeases, type Lease, leasesOf, memberOf, RENEWED_AFTER_MS } from './leases.ts';
import type { Spent } from './limiter.ts';

/** Given back and not told yet; some hundred bytes each. */
const RELEASES_MAX = 10_000;
const ANSWER_MS: Millis = 1000;

export class StoredLeases {
  readonly #connection: StoreConnection;
  readonly #held: HeldLeases;
  readonly #clock: Clock;
  #released: Lease[] = [];
  #isRenewing = false;

  constructor(connection: StoreConnection, held: HeldLeases, clock: Clock) {
    this.#connection = connection;
    this.#held = held;
    this.#clock = clock;
  }

  /** A request is over. @param position among those who asked together */
  end(spent: Spent, position: number): void {
    for (const lease of leasesOf(spent, position)) {
      this.#held.give(lease);
      this.#release(lease);
    }
  }

  /** The answer came too late: nobody holds what was taken. */
  endAll(spent: Spent): void {
    for (let position = 0; position < spent.admitted; position++) this.end(spent, position);
  }

  /** Nobody knows whether anything was taken, and nobody holds it. */
  endUnanswered(checks: readonly PendingCheck[]): void {
    for (const { charge, listeners, leases } of checks) {
      if (leases === null) continue;
      for (const { key, policy } of charge.parts)
        if (policy.algorithm === 'concurrency')
          for (let i = 0; i < listeners.length; i++) this.#release({ key, member: memberOf(leases, i) });
    }
  }

  /** Those of one turn of the event loop go out together. While the store is away so many wait for it. */
  #release(lease: Lease): void {
    if (this.#released.length >= RELEASES_MAX) return;
    if (this.#released.push(lease) === 1) setImmediate(() => this.flush());
  }

  flush(): void {
    if (!this.#connection.ready) return;
    const released = this.#released;
    this.#released = [];
    for (const some of this.#inOneSlot(released)) {
      const { keys, args } = leaseCall(some);
      this.#connection.run(RELEASE, keys, args).catch(endsByItself);
    }
  }

  /** What fails is tried again with the next heartbeat. */
  renewDue(): void {
    if (this.#isRenewing) return;
    this.#isRenewing = true;
    this.renew(this.#clock() - RENEWED_AFTER_MS)
      .catch(endsByItself)
      .finally(() => {
        this.#isRenewing = false;
      });
  }

  /**
   * Says of leases that they are still held.
   *
   * @param toldBefore when the store last heard of them, on this process's clock
   * @throws what keeps the store from answering in time
   */
  async renew(toldBefore: Millis): Promise<void> {
    for (;;) {
      const due = this.#held.toldBefore(toldBefore, LEASES_PER_SCRIPT_MAX);
      if (due.length === 0) return;
      const now = this.#clock();
      await Promise.all(
        this.#inOneSlot(due).map((some) => {
          const { keys, args } = leaseCall(some);
          return within(ANSWER_MS, this.#connection.run(RENEW, keys, args));
        }),
      );
      this.#held.told(due, now);
    }
  }

  #inOneSlot(leases: readonly Lease[]): Lease[][] {
    const slots = Map.groupBy(leases, ({ key }) => this.#connection.slotOf(key));
    return [...slots.values()].flatMap((same) =>
      Array.from({ length: Math.ceil(same.length / LEASES_PER_SCRIPT_MAX) }, (_, i) =>
        same.slice(i * LEASES_PER_SCRIPT_MAX, (i + 1) * LEASES_PER_SCRIPT_MAX),
      ),
    );
  }
}

function endsByItself(): void {}
