/** Opens the counters, the bans and the shadow modes, in the store or in the memory of this process. */

import { Bans } from '#gateway/bans/bans.ts';
import type { Control } from '#gateway/bans/control.ts';
import { MemoryControl } from '#gateway/bans/memory-control.ts';
import { Rows } from '#gateway/bans/rows.ts';
import { Shadows } from '#gateway/bans/shadows.ts';
import type { Sync } from '#gateway/bans/sync.ts';
import { KnownCounters } from '#gateway/limiter/known-counters.ts';
import type { Limiter } from '#gateway/limiter/limiter.ts';
import { MemoryLimiter } from '#gateway/limiter/memory.ts';
import type { GuardedLimiter, GuardedLimiterOptions } from '#gateway/limiter/outage.ts';
import type { Counter } from '#gateway/policy/counter.ts';
import type { StoreAccess } from '#gateway/store/access.ts';

interface CountersOptions
  extends Pick<GuardedLimiterOptions, 'clock' | 'log' | 'replica' | 'onSalt' | 'histories'> {
  /** null keeps the counters in the memory of this process. */
  readonly store: StoreAccess | null;
  /** If it is null, the salt is generated and kept in the store. */
  readonly identitySecret: string | null;
  /** Returns a new random secret with each call. */
  readonly newSalt: () => string;
  /** Maximum numbers of counters and of proven credentials in memory without a store. Each takes 40 bytes. */
  readonly countersMax: number;
  readonly credentialsMax: number;
  /** Called when the set of policies in shadow mode has changed. */
  readonly onShadows: () => void;
  /** All counters of the policies in use. */
  readonly counters: () => readonly Counter[];
}

interface OpenedCounters {
  readonly limiter: Limiter;
  /** The limiter that uses the store. null without a store. */
  readonly guarded: GuardedLimiter | null;
  readonly control: Control;
  readonly bans: Bans;
  readonly shadows: Shadows;
  /** Reads what operators have changed from the store. null without a store. Start it when the policies are in use. */
  readonly sync: Sync | null;
  readonly salt: string;
}

/** @throws StoreRefusedError if the store refuses the login */
export async function openCounters(options: CountersOptions): Promise<OpenedCounters> {
  const { store, identitySecret, clock, log, replica, onSalt, counters } = options;
  const bans = new Bans();
  const shadows = new Shadows({ clock, onChange: options.onShadows });
  const rows = new Rows(bans, shadows);
  const salt = identitySecret ?? options.newSalt();
  if (store === null) {
    const known = new KnownCounters(options);
    const limiter = new MemoryLimiter({ clock, known, log });
    const control = new MemoryControl({ clock, known, rows, salt, replica });
    return { limiter, guarded: null, control, bans, shadows, sync: null, salt };
  }
  const { GuardedLimiter } = await import('#gateway/limiter/outage.ts');
  const { StoreControl } = await import('#gateway/bans/store-control.ts');
  const { Sync } = await import('#gateway/bans/sync.ts');
  const guarded = new GuardedLimiter({
    store,
    clock,
    log,
    budgetMs: store.address.timeoutMs,
    replica,
    // A configured secret is not stored: with it, readers of the store could test guessed addresses.
    salt: identitySecret === null ? salt : '',
    onSalt,
    histories: options.histories,
  });
  const { connection, known } = guarded;
  const sync = new Sync({ connection, known, clock, rows, counters });
  const control = new StoreControl(store, identitySecret, clock, (row) => sync.apply(row));
  const shared = await guarded.start().catch(async (error: Error) => {
    await guarded.close();
    throw error;
  });
  return { limiter: guarded, guarded, control, bans, shadows, sync, salt: identitySecret ?? shared };
}
