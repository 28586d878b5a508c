/** Opens what limits requests: counters, bans, refusals and the policies in use. */

import type { Control } from '#gateway/bans/control.ts';
import { Offenders } from '#gateway/bans/offenders.ts';
import type { Row } from '#gateway/bans/rows.ts';
import { shadowed } from '#gateway/bans/shadows.ts';
import type { GuardedLimiter } from '#gateway/limiter/outage.ts';
import type { HistoriesInUse } from '#gateway/limiter/replicas.ts';
import { countersOf } from '#gateway/policy/counter.ts';
import { regularsIn } from '#gateway/policy/learning.ts';
import type { PolicySet } from '#gateway/policy/policy-set.ts';
import { DAY_MS } from '#gateway/policy/regulars.ts';
import type { DecisionStore } from '#gateway/refusals/decision-record.ts';
import { Decisions } from '#gateway/refusals/decisions.ts';
import { MemoryDecisions } from '#gateway/refusals/memory-decisions.ts';
import type { StoreAccess } from '#gateway/store/access.ts';
import type { Clock, Millis } from '#shared/clock.ts';
import { Enforcement, type EnforcementOptions } from './enforcement.ts';
import { Learning } from './learning.ts';
import { openCounters } from './open-counters.ts';
import type { LimitingSecrets } from './settings.ts';

type CountersOptions = Parameters<typeof openCounters>[0];
type OffendersOptions = ConstructorParameters<typeof Offenders>[0];

interface LimitingOptions
  extends Omit<EnforcementOptions, 'limiter' | 'bans'>,
    Pick<CountersOptions, 'log' | 'replica' | 'newSalt' | 'countersMax' | 'credentialsMax'> {
  readonly policies: PolicySet;
  readonly secrets: LimitingSecrets;
  /** Called if a policy has banned a client. */
  readonly onBan?: OffendersOptions['onBan'];
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

/** @throws StoreRefusedError if the store refuses the login */
export async function openLimiting(options: LimitingOptions): Promise<Limiting> {
  const { policies, secrets, clock, wallClock, log, replica } = options;
  const { store, identitySecret } = secrets;
  let loaded = policies;
  let isOpen = false;
  const useLoaded = (): void => enforcement.use(shadowed(learning.applyTo(loaded), shadows.endsAt));
  const { newSalt, countersMax, credentialsMax } = options;
  const { limiter, guarded, control, bans, shadows, sync, salt } = await openCounters({
    store,
    identitySecret,
    clock,
    log,
    replica,
    newSalt,
    countersMax,
    credentialsMax,
    onSalt: (shared) => {
      enforcement.useSalt(shared);
      decisions.useSalt(shared);
    },
    onShadows: useLoaded,
    histories: {
      // The first heartbeat comes before there are policies.
      inUse: () => {
        const histories = isOpen ? historiesOf(enforcement) : null;
        return histories === null ? null : { ...histories, since: learning.since(histories.name) };
      },
      hear: (name, since) => learning.hear(name, since),
    },
    counters: () => countersOf(enforcement.policies),
  });
  const learning = new Learning({
    now: guarded?.storeClock.now ?? clock,
    onChange: useLoaded,
    log,
  });
  const offenders = new Offenders({
    control,
    onBan: (row, mode) => options.onBan?.(row, mode),
    clock,
    log,
  });
  const enforcement = new Enforcement(learning.applyTo(policies), salt, {
    ...options,
    limiter,
    bans,
  });
  const decisions = new Decisions({
    store: await openDecisionStore(store, wallClock),
    isStoreUsed: () => guarded?.stats().available ?? false,
    wallClock,
    salt,
    policyVersion: () => enforcement.policies.version,
    replica,
  });
  isOpen = true;
  const beginHistories = guarded === null ? historiesInMemory(enforcement, control, learning, clock) : null;
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
      void beginHistories?.();
    },
    async start() {
      await Promise.all([sync?.start(), guarded?.learnHistories(), beginHistories?.()]);
    },
    applyChange: async (row) => sync?.apply(row),
    async close() {
      sync?.stop();
      shadows.close();
      learning.close();
      offenders.close();
      control.close();
      await Promise.all([limiter.close(), decisions.close()]);
    },
  };
}

/** Returns the histories of clients that this process keeps; null if no policy needs them. */
function historiesOf({ policies, table }: Enforcement): HistoriesInUse | null {
  const rule = regularsIn(policies);
  return rule === null ? null : { name: table.everyone.digest, keptMs: rule.visits * DAY_MS };
}

/**
 * Without a store, histories begin with the first policy that needs them. As in a store, they end if no policy
 * has needed them for some time.
 *
 * @returns a function to call after each change of the policies
 */
function historiesInMemory(
  enforcement: Enforcement,
  control: Control,
  learning: Learning,
  clock: Clock,
): () => Promise<void> {
  let unusedSince: Millis | null = null;
  return async () => {
    const histories = historiesOf(enforcement);
    if (histories === null) {
      unusedSince ??= clock();
      return;
    }
    const haveEnded = unusedSince !== null && clock() - unusedSince >= histories.keptMs;
    unusedSince = null;
    learning.hear(histories.name, (await control.historySince('', haveEnded)) ?? clock());
  };
}

/** The client of the store is loaded only if there is a store. This saves start time and memory. */
async function openDecisionStore(store: StoreAccess | null, wallClock: Clock): Promise<DecisionStore> {
  if (store === null) return new MemoryDecisions(wallClock);
  const { RedisDecisions } = await import('#gateway/refusals/redis-decisions.ts');
  return new RedisDecisions(store);
}
