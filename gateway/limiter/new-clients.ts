/**
 * Limits how many clients are stored for the first time on a day: `newPerDay` over all gateways, and a share of it for
 * one IPv6 network. They are counted as requests are, so no gateway stores more.
 */
import { type Identity, identityOf } from '#gateway/identity/digest.ts';
import { EVERYONE, type Identifier } from '#gateway/identity/identifier.ts';
import { Counter } from '#gateway/policy/counter.ts';
import { DAY_MS, NETWORK_SHARE, sharedBy, type VisitRule } from '#gateway/policy/groups.ts';
import { Bucket, Charge } from './charge.ts';
import { dayOf } from './history.ts';
import type { Limiter, Spent } from './limiter.ts';

export interface VisitsLog {
  warn(fields: object, message: string): void;
}

/** `full`: it may be stored tomorrow. `unavailable`: the store did not answer. */
export type Admission = 'admitted' | 'full' | 'unavailable';

/** The common counter is among the keys that all gateways share. */
const ALL = identityOf('control');

export class NewClients {
  readonly #log: VisitsLog | null;
  /** The counters for the last `newPerDay`. */
  #counters = countersFor(1);
  /** The last day of which the log was told that it is full. */
  #fullDay = 0;

  /** @param log null if nobody wants to know */
  constructor(log: VisitsLog | null) {
    this.#log = log;
  }

  /**
   * Counts a client, and asks whether it may be stored.
   *
   * @param network its IPv6 network; null for IPv4
   * @param answer called once
   */
  admit(
    limiter: Pick<Limiter, 'spend'>,
    network: Identity | null,
    { newPerDay }: VisitRule,
    answer: (admission: Admission) => void,
  ): void {
    if (this.#counters.all.policy.limit !== newPerDay) this.#counters = countersFor(newPerDay);
    const all = new Bucket(this.#counters.all, ALL);
    const buckets = network === null ? [all] : [all, new Bucket(this.#counters.network, network)];
    limiter.spend(new Charge(buckets), {
      onSpent: (spent, position) => {
        const isAdmitted = position < spent.admitted;
        if (!isAdmitted) this.#tellIfFull(spent, newPerDay);
        answer(isAdmitted ? 'admitted' : 'full');
      },
      onStoreUnavailable: () => answer('unavailable'),
    });
  }

  /** Tells once a day that no further client is stored. */
  #tellIfFull({ states: [all], admitted }: Spent, newPerDay: number): void {
    if (all == null || all.hasRoom(admitted + 1)) return;
    const day = dayOf(all.state.at);
    if (day === this.#fullDay) return;
    this.#fullDay = day;
    this.#log?.warn(
      { newPerDay },
      'as many new clients as regulars.newPerDay allows were stored today; further ones stay newcomers until tomorrow',
    );
  }
}

interface NewClientCounters {
  readonly all: Counter;
  readonly network: Counter;
}

function countersFor(newPerDay: number): NewClientCounters {
  return {
    all: counterOf(EVERYONE, newPerDay),
    network: counterOf(NETWORK_SHARE.identifier, sharedBy(NETWORK_SHARE, newPerDay)),
  };
}

/** Returns the counter of a policy that is in no file. */
function counterOf(identifier: Identifier, limit: number): Counter {
  const name = 'newPerDay';
  return new Counter(
    {
      name,
      index: 0,
      line: 0,
      identifier,
      unless: null,
      distinct: null,
      onlyFor: null,
      shareOf: null,
      limit,
      overrides: null,
      algorithm: 'fixed-window',
      burst: null,
      capacity: limit,
      cost: { kind: 'units', units: 1 },
      count: 'request',
      windowMs: DAY_MS,
      windowSeconds: DAY_MS / 1000,
      calendar: null,
      bucket: name,
      bucketId: 0,
      rollout: null,
      mode: 'enforce',
      onStoreFailure: 'deny',
      headers: false,
      retryJitter: 0,
      ban: null,
    },
    false,
  );
}
