/** What the guarded limiter is given, and what it tells of itself. */
import type { StoreAccess } from '#gateway/store/access.ts';
import type { openStore } from '#gateway/store/open.ts';
import type { Clock, Millis } from '#shared/clock.ts';
import type { StoreFailure } from './redis.ts';

export interface OutageLog {
  warn(fields: object, message: string): void;
  info(fields: object, message: string): void;
}

export interface GuardedLimiterOptions {
  readonly store: StoreAccess;
  /** Opens the connection to the store. Default: by the kind of its address. */
  readonly openStore?: typeof openStore;
  /** Maximum number of counters, and of credentials, to remember; a power of two. Default: 262,144 and 65,536. */
  readonly rememberedMax?: number;
  readonly clock: Clock;
  readonly log: OutageLog;
  readonly budgetMs: Millis;
  readonly replica: string;
  /** Candidate for the salt that the replicas share, ignored once the store keeps one; '': no salt is shared. */
  readonly salt: string;
  /** The replicas agreed on another salt, for instance after the store was emptied. */
  readonly onSalt: (salt: string) => void;
}

export interface StoreStats {
  /** Checks that failed, by kind. */
  readonly failures: Readonly<Record<StoreFailure, number>>;
  /** Requests decided without the store. */
  readonly degraded: number;
  readonly available: boolean;
  /** Since when the circuit is open, and the store not asked; null: it is closed. */
  readonly openSince: Millis | null;
  /** How often this process has stopped asking the store. */
  readonly outages: number;
  /** Living replicas, as last heard. */
  readonly replicas: number;
  /** Counters and credentials that this process remembers. */
  readonly remembered: number;
}
