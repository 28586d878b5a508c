/** The policies in use, and the parts of the gateway that every request needs. */

import type { Bans } from '#gateway/bans/bans.ts';
import type { Offenders } from '#gateway/bans/offenders.ts';
import type { HeaderFilter } from '#gateway/http/header-filter.ts';
import type { RequestOrigin } from '#gateway/http/request-origin.ts';
import { Digester } from '#gateway/identity/digest.ts';
import type { Limiter, Outcome } from '#gateway/limiter/limiter.ts';
import type { HistoriesInUse } from '#gateway/limiter/replicas.ts';
import type { Metrics } from '#gateway/observe/metrics/metrics.ts';
import type { RefusedAddresses } from '#gateway/observe/refused-addresses.ts';
import { regularsIn } from '#gateway/policy/learning.ts';
import type { Match } from '#gateway/policy/match.ts';
import type { PolicySet } from '#gateway/policy/policy-set.ts';
import { DAY_MS } from '#gateway/policy/regulars.ts';
import type { ProxyTrust } from '#shared/client-address.ts';
import type { Clock, Millis } from '#shared/clock.ts';
import type { RandomInt } from '#shared/random-int.ts';
import { type AnsweredPage, ForeignPages } from './foreign-pages.ts';
import { OtherHosts } from './other-hosts.ts';
import { type Caller, Callers } from './reading/caller.ts';
import { PolicyTable } from './reading/policy-table.ts';
import { type MatchReport, Unmatched } from './unmatched.ts';

export interface EnforcementOptions {
  readonly clock: Clock;
  /** Used for the Date field and the expiry of tokens. Unlike `clock`, it follows corrections of the system time. */
  readonly wallClock: Clock;
  /** Chooses the random part of Retry-After. */
  readonly randomInt: RandomInt;
  readonly limiter: Limiter;
  readonly bans: Bans;
  /** Counts denials for bans; null if denials cause no bans. */
  readonly offenders: Pick<Offenders, 'note'> | null;
  readonly metrics: Metrics;
  /** Addresses of refused clients, if operators may see them. */
  readonly addresses?: RefusedAddresses | null;
  readonly trust: ProxyTrust;
  readonly headerFilter: HeaderFilter;
  /** Called if a trusted proxy sent an unreadable X-Forwarded-For chain. */
  readonly onUntrustedChain: (peer: string) => void;
  /** Called if a reply lacks the header that should report its units, so the reserve stays charged. */
  readonly onUnitsMissing?: (policy: string, header: string) => void;
  /** Called if the policy file matches none of the requests of a minute. null if nobody wants to know. */
  readonly onNothingMatched?: ((paths: readonly string[]) => void) | null;
  /** Called if pages of other origins use the application and the policy file does not have `replies: cors`. */
  readonly onForeignPages?: () => void;
}

export class Enforcement {
  readonly options: EnforcementOptions;
  readonly #callers: Callers;
  #table: PolicyTable;
  #unmatched: Unmatched;
  #otherHosts: OtherHosts;
  #foreignPages: ForeignPages;

  constructor(set: PolicySet, salt: string, options: EnforcementOptions) {
    this.options = options;
    this.#callers = new Callers(options.trust, (peer) => {
      options.metrics.untrustedChains++;
      options.onUntrustedChain(peer);
    });
    this.#table = new PolicyTable(set, new Digester(salt), options.wallClock);
    this.#unmatched = new Unmatched(this.options.onNothingMatched ?? null);
    this.#otherHosts = new OtherHosts(set.policies);
    this.#foreignPages = this.#newForeignPages();
  }

  #newForeignPages(): ForeignPages {
    return new ForeignPages(this.policies, () => this.options.onForeignPages?.());
  }

  get table(): PolicyTable {
    return this.#table;
  }

  get policies(): PolicySet {
    return this.#table.set;
  }

  /** The histories of clients that this process keeps; null if no policy has `newcomers`. */
  get histories(): HistoriesInUse | null {
    const rule = regularsIn(this.policies);
    return rule === null ? null : { name: this.#table.everyone.digest, keptMs: rule.visits * DAY_MS };
  }

  get metrics(): Metrics {
    return this.options.metrics;
  }

  /** Replaces the policies. Counters are identified by name, so they keep their values. */
  use(set: PolicySet): void {
    this.#table = this.#table.withPolicies(set);
    this.#unmatched = new Unmatched(this.options.onNothingMatched ?? null);
    this.#otherHosts = new OtherHosts(set.policies);
    this.#foreignPages = this.#newForeignPages();
  }

  /** Notices whether the policy file fits the traffic. */
  located(match: Match, host: string, now: Millis): void {
    this.#unmatched.note(match, now);
    this.#otherHosts.note(host);
  }

  /** Notices whether pages of other origins use the application. @param headers of its reply */
  answered(page: AnsweredPage, headers: readonly string[]): void {
    this.#foreignPages.note(page, headers);
  }

  get matches(): MatchReport {
    return {
      policyVersion: this.policies.version,
      ...this.#unmatched.report,
      otherHosts: this.#otherHosts.list,
      hasForeignPages: this.#foreignPages.isSeen,
    };
  }

  /** Called if the replicas agreed on another salt. */
  useSalt(salt: string): void {
    this.#table = this.#table.withSalt(salt);
  }

  /** Counts the units that replies have cost. */
  settled(outcomes: readonly Outcome[]): void {
    const { metrics, onUnitsMissing } = this.options;
    for (const { bucket, units, lacksUnits } of outcomes) {
      const { policy, cost, counter } = bucket;
      // An unproven credential is also charged to its address, by the same policy.
      if (counter.forUnproven) continue;
      if (policy.cost.kind === 'reply-header' || policy.cost.kind === 'reply-bytes')
        metrics.settled(policy, cost, units, lacksUnits);
      if (policy.cost.kind === 'reply-header' && lacksUnits)
        onUnitsMissing?.(policy.name, policy.cost.header);
    }
  }

  /** @param forwardedFor all values of X-Forwarded-For, joined; '' if there is none */
  callerOf(origin: RequestOrigin, forwardedFor: string): Caller {
    return this.#callers.of(origin, forwardedFor, this.#table);
  }
}
