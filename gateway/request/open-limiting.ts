/** Opens what limits requests: counters, bans, shadow modes, refusals and the policies in use. */

import type { Control } from '#gateway/bans/control.ts';
import { MemoryControl } from '#gateway/bans/memory-control.ts';
import { Offenders } from '#gateway/bans/offenders.ts';
import { type Row, Rows } from '#gateway/bans/rows.ts';
import { shadowed } from '#gateway/bans/shadows.ts';
import type { Sync } from '#gateway/bans/sync.ts';
import { KnownCounters } from '#gateway/limiter/known-counters.ts';
import type { Limiter } from '#gateway/limiter/limiter.ts';
import { MemoryLimiter } from '#gateway/limiter/memory.ts';
import type { GuardedLimiter, GuardedLimiterOptions } from '#gateway/limiter/outage.ts';
import { countersOf } from '#gateway/policy/counter.ts';
import type { PolicySet } from '#gateway/policy/policy-set.ts';
import { regularsIn } from '#gateway/policy/regulars.ts';
import type { DecisionStore } from '#gateway/refusals/decision-record.ts';
import { Decisions } from '#gateway/refusals/decisions.ts';
import { MemoryDecisions } from '#gateway/refusals/memory-decisions.ts';
import type { StoreAccess } from '#gateway/store/access.ts';
import type { Clock } from '#shared/clock.ts';
import { Enforcement, type EnforcementOptions } from './enforcement.ts';
import { keptMs, Learning } from './learning.ts';
import type { LimitingSecrets } from './settings.ts';

/** Maximum number of counters, and of proven credentials, in memory without a store. Each takes 40 bytes. */
const COUNTERS_MAX = 1_048_576;

interface LimitingOptions
  extends Omit<EnforcementOptions, 'limiter' | 'bans'>,
    Pick<GuardedLimiterOptions, 'log' | 'replica' | 'rememberedMax'> {
  readonly policies: PolicySet;
  readonly secrets: LimitingSecrets;
  /** Returns a new random secret with each call. */
  readonly newSalt: () => string;
  /** See Offenders. */
  readonly onBan: ConstructorParameters<typeof Offenders>[0]['onBan'];
}

export interface Limiting {
  readonly enforcement: Enforcement;
  readonly decisions: Decisions;
  readonly control: Control;
  /** Counts denials for bans. */
  readonly offenders: Offenders;
  /** The limiter that uses the store. null without a store. */
  readonly guarded: GuardedLimiter | null;
  /** The policies as loaded from the file, without the shadow modes that operators have set. */
  policySet(): PolicySet;
  /** Replaces the policies. Counters are identified by name and keep their values. */
  use(policies: PolicySet): void;
  /** Reads the bans before the first request. Otherwise a replaced worker would first admit banned clients. */
  start(): Promise<void>;
  /** Applies a row that another process has already written to the store. */
  applyChange(row: Row): Promise<void>;
  close(): Promise<void>;
}

/** The counters, in the store or in the memory of this process. */
interface Counters extends Pick<Limiting, 'guarded' | 'control'> {
  readonly limiter: Limiter;
  /** Reads what operators have changed from the store. null without a store. */
  readonly sync: Sync | null;
  readonly salt: string;
}

/** The parts that are there before the counters. */
interface Before {
  readonly rows: Rows;
  readonly learning: Learning;
  /** null while the gateway opens: the first heartbeat comes before there are policies. */
  enforcement: Enforcement | null;
}

/** @throws StoreRefusedError if the store refuses the login */
export async function openLimiting(options: LimitingOptions): Promise<Limiting> {
  const { policies, secrets, clock, wallClock, log, replica } = options;
  const { store } = secrets;
  let loaded = policies;
  let guarded: GuardedLimiter | null = null;
  const useLoaded = (): void => before.enforcement?.use(shadowed(learning.applyTo(loaded), rows.shadows));
  const now = (): number => (guarded === null ? clock() : guarded.storeClock.now());
  const rows = new Rows({ clock, onShadows: useLoaded });
  const learning = new Learning({ now, hasStore: store !== null, onChange: useLoaded, log });
  const before: Before = { rows, learning, enforcement: null };
  const counters = store === null ? openInMemory(options, before) : await openInStore(options, store, before);
  const { limiter, control, sync, salt } = counters;
  guarded = counters.guarded;
  const enforcement = new Enforcement(learning.applyTo(policies), salt, {
    ...options,
    limiter,
    bans: rows.bans,
  });
  const decisions = new Decisions({
    store: await openDecisionStore(store, wallClock),
    isStoreUsed: () => guarded?.stats().available ?? false,
    wallClock,
    policyVersion: () => enforcement.policies.version,
    replica,
  });
  before.enforcement = enforcement;
  const offenders = new Offenders({ ...options, control });
  return {
    enforcement,
    decisions,
    control,
    offenders,
    guarded,
    policySet: () => loaded,
    use(set) {
      loaded = set;
      useLoaded();
    },
    async start() {
      await Promise.all([sync?.start(), guarded?.learnHistories()]);
    },
    applyChange: async (row) => sync?.apply(row),
    async close() {
      sync?.stop();
      rows.close();
      learning.close();
      offenders.close();
      control.close();
      await Promise.all([limiter.close(), decisions.close()]);
    },
  };
}

function openInMemory(options: LimitingOptions, { rows, learning }: Before): Counters {
  const { secrets, newSalt, clock, log, rememberedMax } = options;
  const salt = secrets.identitySecret ?? newSalt();
  const known = new KnownCounters({ countersMax: rememberedMax ?? COUNTERS_MAX });
  const historySince = () => learning.since('');
  return {
    limiter: new MemoryLimiter({ clock, known, log }),
    guarded: null,
    control: new MemoryControl({ clock, known, rows, salt, historySince }),
    sync: null,
    salt,
  };
}

/** The client of the store is loaded only if there is a store. This saves start time and memory. */
async function openInStore(
  { secrets, newSalt, clock, log, replica, rememberedMax }: LimitingOptions,
  store: StoreAccess,
  before: Before,
): Promise<Counters> {
  const { rows, learning } = before;
  const { identitySecret } = secrets;
  const { GuardedLimiter } = await import('#gateway/limiter/outage.ts');
  const { StoreControl } = await import('#gateway/bans/store-control.ts');
  const { Sync } = await import('#gateway/bans/sync.ts');
  const guarded = new GuardedLimiter({
    store,
    clock,
    log,
    budgetMs: store.address.timeoutMs,
    replica,
    rememberedMax,
    // A configured secret is not stored: with it, readers of the store could test guessed addresses.
    salt: identitySecret === null ? newSalt() : '',
    onSalt: (shared) => before.enforcement?.useSalt(shared),
    histories: {
      inUse() {
        const policies = before.enforcement?.policies;
        const rule = policies === undefined ? null : regularsIn(policies);
        if (rule === null) return null;
        const name = before.enforcement?.table.everyone.digest ?? '';
        return { name, keptMs: keptMs(rule), since: learning.since(name) };
      },
      hear: (name, since) => learning.hear(name, since),
    },
  });
  const { connection, known } = guarded;
  const counters = () => (before.enforcement === null ? [] : countersOf(before.enforcement.policies));
  const sync = new Sync({ connection, known, clock, rows, counters });
  const control = new StoreControl(store, identitySecret, clock, (row) => sync.apply(row));
  const shared = await guarded.start().catch(async (error: Error) => {
    await guarded.close();
    throw error;
  });
  return { limiter: guarded, guarded, control, sync, salt: identitySecret ?? shared };
}

async function openDecisionStore(store: StoreAccess | null, wallClock: Clock): Promise<DecisionStore> {
  if (store === null) return new MemoryDecisions(wallClock);
  const { RedisDecisions } = await import('#gateway/refusals/redis-decisions.ts');
  return new RedisDecisions(store);
}
