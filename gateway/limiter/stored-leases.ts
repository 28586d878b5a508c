/**
 * Renews this process's leases in the store, and gives them back. No request waits for either, because a lease expires
 * unless it is renewed.
 */

import { TAKE_LEASE_LUA } from '#gateway/algorithms/concurrency.ts';
import {
  inCalls,
  KEYS_PER_SCRIPT_MAX,
  type StoreConnection,
  type StoreScript,
  storeScript,
} from '#gateway/store/connection.ts';
import type { Clock, Millis } from '#shared/clock.ts';
import type { PendingCheck } from './check.ts';
import { type HeldLeases, type Lease, leasesOf, memberOf, RENEWED_AFTER_MS } from './leases.ts';
import type { Spent } from './limiter.ts';
import type { SharedStore } from './shared-store.ts';

/**
 * KEYS: counters. ARGV: for each the lease that is still held. An expired lease is taken again, because its request
 * still runs.
 */
export const RENEW = storeScript(`
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
for i = 1, #KEYS do
  local key, member = KEYS[i], ARGV[i]${TAKE_LEASE_LUA}
end
return #KEYS
`);

/** KEYS: counters. ARGV: for each the lease that is given back. */
export const RELEASE = storeScript(`
for i = 1, #KEYS do redis.call('ZREM', KEYS[i], ARGV[i]) end
return #KEYS
`);

/** Maximum number of returned leases that the store has not confirmed yet; about a hundred bytes each. */
const RELEASES_MAX = 10_000;

export class StoredLeases {
  readonly #connection: StoreConnection;
  readonly #held: HeldLeases;
  readonly #clock: Clock;
  #released: Lease[] = [];

  constructor({ connection, known, clock }: SharedStore) {
    this.#connection = connection;
    this.#held = known.leases;
    this.#clock = clock;
  }

  /** Ends the leases of a request. @param position of the request in its batch */
  end(spent: Spent, position: number): void {
    for (const lease of leasesOf(spent, position)) {
      this.#held.give(lease);
      this.release(lease);
    }
  }

  /** Gives back leases that the store may have given to requests that do not hold them. */
  endUnanswered(checks: readonly PendingCheck[]): void {
    for (const { charge, listeners, leases } of checks) {
      if (leases === null) continue;
      for (const { key, algorithm } of charge.buckets)
        if (algorithm.isHeld)
          for (let i = 0; i < listeners.length; i++) this.release({ key, member: memberOf(leases, i) });
    }
  }

  /** Collects the leases of one tick into one call. During an outage a bounded number waits. */
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

  /** Renews leases that are due. The next heartbeat repeats a renewal that fails. */
  renewDue(): void {
    this.renew(this.#clock() - RENEWED_AFTER_MS).catch(endsByItself);
  }

  /**
   * Renews the leases that are still held.
   * @param renewedBefore time of the last renewal, on this process's clock
   * @throws StoreFault
   */
  async renew(renewedBefore: Millis): Promise<void> {
    for (;;) {
      const due = this.#held.renewedBefore(renewedBefore, KEYS_PER_SCRIPT_MAX);
      if (due.length === 0) return;
      const now = this.#clock();
      await Promise.all(this.#tell(RENEW, due));
      this.#held.renewed(due, now);
    }
  }

  /** Makes as many calls as the slots and the number of leases need. */
  #tell(script: StoreScript, leases: readonly Lease[]): Promise<unknown>[] {
    return inCalls(this.#connection, leases, ({ key }) => key).map((some) => {
      const keys = some.map(({ key }) => key);
      const members = some.map(({ member }) => member);
      return this.#connection.run(script, keys, members);
    });
  }
}

function endsByItself(): void {}
