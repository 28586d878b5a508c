/** Notices whether the policy file in use fits the traffic, for the log, `doctor` and the page. */
import { ForeignPages } from '#gateway/observe/foreign-pages.ts';
import { OtherHosts } from '#gateway/observe/other-hosts.ts';
import { type MatchReport, Unmatched } from '#gateway/observe/unmatched.ts';
import type { PolicySet } from '#gateway/policy/policy-set.ts';
import type { Observer } from '#gateway/request/events.ts';

interface TrafficOptions {
  /** Returns the policies in use. */
  readonly policies: () => PolicySet;
  /** Called if the policy file matches none of the requests of a minute. null if nobody wants to know. */
  readonly onNothingMatched: ((paths: readonly string[]) => void) | null;
  /** Called if pages of other origins use the application and the policy file does not have `replies: cors`. */
  readonly onForeignPages: () => void;
}

export class Traffic {
  readonly #options: TrafficOptions;
  #seen: ReturnType<typeof withSet>;

  constructor(options: TrafficOptions) {
    this.#options = options;
    this.#seen = withSet(options);
  }

  readonly observer: Observer = {
    located: ({ match, host, arrivedAt }) => {
      const { unmatched, otherHosts } = this.#current;
      unmatched.note(match, arrivedAt);
      otherHosts.note(host);
    },
    replied: (request, { headers }) => this.#current.foreignPages.note(request, headers),
  };

  get report(): MatchReport {
    const { set, unmatched, otherHosts, foreignPages } = this.#current;
    return {
      policyVersion: set.version,
      ...unmatched.report,
      otherHosts: otherHosts.list,
      hasForeignPages: foreignPages.isSeen,
    };
  }

  /** A reload begins anew. */
  get #current(): ReturnType<typeof withSet> {
    if (this.#seen.set !== this.#options.policies()) this.#seen = withSet(this.#options);
    return this.#seen;
  }
}

function withSet({ policies, onNothingMatched, onForeignPages }: TrafficOptions) {
  const set = policies();
  return {
    set,
    unmatched: new Unmatched(onNothingMatched),
    otherHosts: new OtherHosts(set.policies),
    foreignPages: new ForeignPages(set, onForeignPages),
  };
}
