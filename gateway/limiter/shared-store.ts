import type { StoreConnection } from '#gateway/store/connection.ts';
import type { Clock } from '#shared/clock.ts';
import type { KnownCounters } from './known-counters.ts';
import type { StoreClock } from './store-clock.ts';

/** All parts of the limiter that use a store need this. */
export interface SharedStore {
  readonly connection: StoreConnection;
  readonly clock: Clock;
  readonly storeClock: StoreClock;
  readonly known: KnownCounters;
}
