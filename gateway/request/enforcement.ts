/** The policies in use, and the parts of the gateway that every request needs. */
import type { HeaderFilter } from '#gateway/http/header-filter.ts';
import type { RequestOrigin } from '#gateway/http/request-origin.ts';
import { Digester } from '#gateway/identity/digest.ts';
import type { Limiter, Outcome } from '#gateway/limiter/limiter.ts';
import type { Metrics } from '#gateway/observe/metrics/metrics.ts';
import type { Bans } from '#gateway/operate/control/bans.ts';
import type { Offenders } from '#gateway/operate/control/offenders.ts';
import type { Addresses } from '#gateway/operate/decisions/addresses.ts';
import type { PolicySet } from '#gateway/policy/policy-set.ts';
import { DenialWriter } from '#gateway/reply/denial.ts';
import type { ProxyTrust } from '#shared/client-address.ts';
import type { Clock } from '#shared/clock.ts';
import { type Caller, Callers } from './reading/caller.ts';
import { PolicyTable } from './reading/policy-table.ts';
import { Unmatched } from './unmatched.ts';

interface EnforcementOptions {
  readonly clock: Clock;
  /** Used for the Date field and the expiry of tokens. Unlike `clock`, it follows corrections of the system time. */
  readonly wallClock: Clock;
  readonly limiter: Limiter;
  readonly bans: Bans;
  /** Counts denials for bans; null if denials cause no bans. */
  readonly offenders: Pick<Offenders, 'note'> | null;
  readonly metrics: Metrics;
  /** Addresses of refused clients, if operators may see them. */
  readonly addresses?: Addresses;
  readonly trust: ProxyTrust;
  readonly headerFilter: HeaderFilter;
  /** Called if a trusted proxy sent an unreadable X-Forwarded-For chain. */
  readonly onUntrustedChain: (peer: string) => void;
  /** Called if a reply lacks the header that should report its units, so the reserve stays charged. */
  readonly onUnitsMissing?: (policy: string, header: string) => void;
  /** Called if the policy file matches none of the requests of a minute. */
  readonly onNothingMatched?: (paths: readonly string[]) => void;
}

export class Enforcement {
  readonly options: EnforcementOptions;
  readonly denials: DenialWriter;
  readonly #callers: Callers;
  #table: PolicyTable;
  /** null if nobody wants to know */
  #unmatched: Unmatched | null = null;

  constructor(set: PolicySet, salt: string, options: EnforcementOptions) {
    this.options = options;
    this.denials = new DenialWriter(options.wallClock);
    this.#callers = new Callers(options.trust, (peer) => {
      options.metrics.untrustedChains++;
      options.onUntrustedChain(peer);
    });
    this.#table = new PolicyTable(set, new Digester(salt), options.wallClock);
    this.#watchMatches();
  }

  get table(): PolicyTable {
    return this.#table;
  }

  get policies(): PolicySet {
    return this.#table.set;
  }

  get metrics(): Metrics {
    return this.options.metrics;
  }

  /** Replaces the policies. Counters are identified by name, so they keep their values. */
  use(set: PolicySet): void {
    this.#table = this.#table.withPolicies(set);
    this.#watchMatches();
  }

  get unmatched(): Unmatched | null {
    return this.#unmatched;
  }

  #watchMatches(): void {
    const { onNothingMatched } = this.options;
    if (onNothingMatched !== undefined) this.#unmatched = new Unmatched(onNothingMatched);
  }

  /** Called if the replicas agreed on another salt. */
  useSalt(salt: string): void {
    this.#table = this.#table.withSalt(salt);
  }

  /** Counts the units that replies have reported. */
  settled(outcomes: readonly Outcome[]): void {
    const { metrics, onUnitsMissing } = this.options;
    for (const { bucket, units, lacksUnits } of outcomes) {
      const { policy, cost, counter } = bucket;
      // An unproven credential is also charged to its address, by the same policy.
      if (policy.cost.kind !== 'reply-header' || counter.forUnproven) continue;
      metrics.settled(policy, cost, units, lacksUnits);
      if (lacksUnits) onUnitsMissing?.(policy.name, policy.cost.header);
    }
  }

  /** @param forwardedFor all values of X-Forwarded-For, joined; '' if there is none */
  callerOf(origin: RequestOrigin, forwardedFor: string): Caller {
    return this.#callers.of(origin, forwardedFor, this.#table);
  }
}
