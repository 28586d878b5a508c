import type { StoreConnection } from '#gateway/store/connection.ts';
import type { Clock } from '#shared/clock.ts';
import type { KnownCounters } from './known-counters.ts';
import type { StoreClock } from './store-clock.ts';

/** What all parts of the limiter need that use a store. */
export interface SharedStore {
  readonly connection: StoreConnection;
  readonly clock: Clock;
  readonly storeClock: StoreClock;
  readonly known: KnownCounters;
}
