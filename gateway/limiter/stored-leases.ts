/**
 * Renews this process's leases in the store, and gives them back there. Neither keeps a request waiting: a lease that is
 * not renewed ends by itself.
 */
import {
  inCalls,
  KEYS_PER_SCRIPT_MAX,
  type StoreConnection,
  type StoreScript,
  storeScript,
} from '#gateway/store/connection.ts';
import type { Clock, Millis } from '#shared/clock.ts';
import { within } from '#shared/within.ts';
import { TAKE_LEASE_LUA } from './algorithms/concurrency.ts';
import type { PendingCheck } from './check.ts';
import { type HeldLeases, type Lease, leasesOf, memberOf, RENEWED_AFTER_MS } from './leases.ts';
import type { Spent } from './limiter.ts';

/** KEYS counters; ARGV of each the lease that is still held. One that had ended is taken again: its request is not over. */
export const RENEW = storeScript(`
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
for i = 1, #KEYS do
  local key, member = KEYS[i], ARGV[i]${TAKE_LEASE_LUA}
end
return #KEYS
`);

/** KEYS counters; ARGV of each the lease that is given back. */
export const RELEASE = storeScript(`
for i = 1, #KEYS do redis.call('ZREM', KEYS[i], ARGV[i]) end
return #KEYS
`);

/** Leases that the store does not know to be given back yet; some hundred bytes each. */
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
      this.release(lease);
    }
  }

  /** The answer came too late, so nobody holds the leases that it took. */
  endAll(spent: Spent): void {
    for (let position = 0; position < spent.admitted; position++) this.end(spent, position);
  }

  /** Gives back leases that the store may have given to requests that do not hold them. */
  endUnanswered(checks: readonly PendingCheck[]): void {
    for (const { charge, listeners, leases } of checks) {
      if (leases === null) continue;
      for (const { key, policy } of charge.buckets)
        if (policy.algorithm === 'concurrency')
          for (let i = 0; i < listeners.length; i++) this.release({ key, member: memberOf(leases, i) });
    }
  }

  /** Those of one tick of the event loop go out together. While the store is away so many wait for it. */
  release(lease: Lease): void {
    if (this.#released.length >= RELEASES_MAX) return;
    if (this.#released.push(lease) === 1) setImmediate(() => this.flush());
  }

  flush(): void {
    if (!this.#connection.ready) return;
    const released = this.#released;
    this.#released = [];
    for (const call of this.#tell(RELEASE, released)) call.catch(endsByItself);
  }

  /** A renewal that fails is tried again with the next heartbeat. */
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
   * Renews the leases that are still held.
   *
   * @param renewedBefore when they were last renewed, on this process's clock
   * @throws what keeps the store from answering in time
   */
  async renew(renewedBefore: Millis): Promise<void> {
    for (;;) {
      const due = this.#held.renewedBefore(renewedBefore, KEYS_PER_SCRIPT_MAX);
      if (due.length === 0) return;
      const now = this.#clock();
      await Promise.all(this.#tell(RENEW, due).map((call) => within(ANSWER_MS, call)));
      this.#held.renewed(due, now);
    }
  }

  /** As many calls as their slots and their number need. */
  #tell(script: StoreScript, leases: readonly Lease[]): Promise<unknown>[] {
    return inCalls(this.#connection, leases, ({ key }) => key).map((some) => {
      const keys = some.map(({ key }) => key);
      const members = some.map(({ member }) => member);
      return this.#connection.run(script, keys, members);
    });
  }
}

function endsByItself(): void {}
