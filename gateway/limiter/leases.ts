/**
 * Leases: each request in flight holds one in the counters of policies with `algorithm: concurrency`
 * (gateway/algorithms/concurrency.ts). Its process renews the lease while the request lasts. The leases of a process that died
 * expire. This process knows the leases that it holds. It renews these, reports them to the store after an outage, and
 * counts them if there is no store. No request waits for a renewal, or for a lease that is given back.
 */
import { hash } from 'node:crypto';
import { LEASE_MS, TAKE_LEASE_LUA } from '#gateway/algorithms/concurrency.ts';
import {
  inCalls,
  KEYS_PER_SCRIPT_MAX,
  type StoreConnection,
  type StoreScript,
  storeScript,
} from '#gateway/store/connection.ts';
import type { Clock, Millis } from '#shared/clock.ts';
import type { Bucket } from './charge.ts';
import type { PendingCheck, Spent } from './limiter.ts';

/** Age at which a lease is renewed. So it is renewed twice more before it would expire. */
export const RENEWED_AFTER_MS: Millis = LEASE_MS / 3;
/** Length of the holder's name in leases. Redis keeps short names in less memory. */
const NAME_LENGTH = 12;
/** Maximum number of returned leases that the store has not confirmed yet; about a hundred bytes each. */
const RELEASES_MAX = 10_000;

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

export interface Lease {
  /** Key of the counter. */
  readonly key: string;
  /** Name of the lease in that counter. */
  readonly member: string;
}

/** Returns the lease of one request of a batch. @param leases value of `Spent.leases` */
export function memberOf(leases: string, position: number): string {
  return `${leases}.${position}`;
}

/** Yields the leases of one admitted request. @param position in its batch, from 0 */
export function* leasesOf({ buckets, states, leases }: Spent, position: number): Iterable<Lease> {
  if (leases === null) return;
  for (const [i, { key, algorithm, cost }] of buckets.entries()) {
    // With a policy that never denies, more requests pass than the limit, but only so many hold a lease.
    if (algorithm.isHeld && position < (states[i]?.roomFor(cost) ?? 0))
      yield { key, member: memberOf(leases, position) };
  }
}

/** The leases of this process: one for each request in flight and each of its counters. */
export class HeldLeases {
  readonly #name: string;
  #named = 0;
  /** When the store last confirmed a lease, on this process's clock; -Infinity if never. By counter and name. */
  readonly #held = new Map<string, Map<string, Millis>>();

  /** @param holder name of this process among the replicas */
  constructor(holder = '') {
    this.#name = hash('sha256', holder, 'base64url').slice(0, NAME_LENGTH);
  }

  /** Returns a unique name for the leases of one charge. */
  nextName(): string {
    return `${this.#name}.${(this.#named++).toString(36)}`;
  }

  /** Returns how many requests of this process are in flight for a counter. */
  count({ key }: Pick<Bucket, 'key'>): number {
    return this.#held.get(key)?.size ?? 0;
  }

  has({ key, member }: Lease): boolean {
    return this.#held.get(key)?.has(member) === true;
  }

  /** @param renewedAt when the store confirmed it; -Infinity if the store did not take part. */
  take({ key, member }: Lease, renewedAt: Millis): void {
    const those = this.#held.get(key);
    if (those === undefined) this.#held.set(key, new Map([[member, renewedAt]]));
    else those.set(member, renewedAt);
  }

  give({ key, member }: Lease): void {
    const those = this.#held.get(key);
    those?.delete(member);
    if (those?.size === 0) this.#held.delete(key);
  }

  /** Yields leases that were last renewed before a time. */
  *renewedBefore(moment: Millis): Generator<Lease> {
    for (const [key, those] of this.#held)
      for (const [member, renewedAt] of those) if (renewedAt < moment) yield { key, member };
  }
}

/** Renews the leases in the store, and gives them back. */
export class StoredLeases {
  readonly #connection: StoreConnection;
  readonly #held: HeldLeases;
  readonly #clock: Clock;
  #released: Lease[] = [];

  constructor(connection: StoreConnection, held: HeldLeases, clock: Clock) {
    this.#connection = connection;
    this.#held = held;
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
      const due = this.#held.renewedBefore(renewedBefore).take(KEYS_PER_SCRIPT_MAX).toArray();
      if (due.length === 0) return;
      const now = this.#clock();
      await Promise.all(this.#tell(RENEW, due));
      // Some of the requests may have ended meanwhile.
      for (const lease of due) if (this.#held.has(lease)) this.#held.take(lease, now);
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
