/** The policies in use, and the parts of the gateway that every request needs. */

import type { Bans } from '#gateway/bans/bans.ts';
import type { HeaderFilter } from '#gateway/http/header-filter.ts';
import type { RequestOrigin } from '#gateway/http/request-origin.ts';
import { Digester } from '#gateway/identity/digest.ts';
import type { Limiter } from '#gateway/limiter/limiter.ts';
import type { PolicySet } from '#gateway/policy/policy-set.ts';
import type { ProxyTrust } from '#shared/client-address.ts';
import type { Clock } from '#shared/clock.ts';
import type { RandomInt } from '#shared/random-int.ts';
import { type Caller, Callers } from './reading/caller.ts';
import { PolicyTable } from './reading/policy-table.ts';

export interface EnforcementOptions {
  readonly clock: Clock;
  /** Used for the Date field and the expiry of tokens. Unlike `clock`, it follows corrections of the system time. */
  readonly wallClock: Clock;
  /** Chooses the random part of Retry-After. */
  readonly randomInt: RandomInt;
  readonly limiter: Limiter;
  readonly bans: Bans;
  readonly trust: ProxyTrust;
  readonly headerFilter: HeaderFilter;
  /** Called if a trusted proxy sent an unreadable X-Forwarded-For chain. */
  readonly onUntrustedChain: (peer: string) => void;
}

export class Enforcement {
  readonly options: EnforcementOptions;
  readonly #callers: Callers;
  table: PolicyTable;

  constructor(set: PolicySet, salt: string, options: EnforcementOptions) {
    this.options = options;
    this.#callers = new Callers(options.trust, options.onUntrustedChain);
    this.table = new PolicyTable(set, new Digester(salt), options.wallClock);
  }

  get policies(): PolicySet {
    return this.table.set;
  }

  /** Replaces the policies. Counters are identified by name, so they keep their values. */
  use(set: PolicySet): void {
    this.table = this.table.withPolicies(set);
  }

  /** Called if the replicas agreed on another salt. */
  useSalt(salt: string): void {
    this.table = this.table.withSalt(salt);
  }

  /** @param forwardedFor all values of X-Forwarded-For, joined; '' if there is none */
  callerOf(origin: RequestOrigin, forwardedFor: string): Caller {
    return this.#callers.of(origin, forwardedFor, this.table);
  }
}
