/** Counts decisions for each policy. */
import type { Identity } from '#gateway/identity/digest.ts';
import type { Policy } from '#gateway/policy/policy.ts';
import type { PolicySet } from '#gateway/policy/policy-set.ts';
import type { Decided, DecidedAs } from '#gateway/workbench/rehearsal/rehearsed.ts';
import { isoTime, type Millis } from '#shared/clock.ts';
import { ClientCounts } from './client-counts.ts';
import type { Judged } from './judge.ts';

const SHOWN_MAX = 5;

export class Tally {
  readonly #policies: readonly PolicyTally[];
  readonly counts = {
    allowed: 0,
    denied: 0,
    uncovered: 0,
    malformed: 0,
    /** Requests that a ban refused, according to the log. */
    banned: 0,
    /** Requests with policies whose counted client is not in the log. */
    unknown: 0,
  };

  constructor({ policies }: PolicySet) {
    this.#policies = policies.map((policy) => new PolicyTally(policy));
  }

  add({ weighed, unknown }: Judged, at: Millis): void {
    for (const policy of unknown) this.#of(policy).counts.unknown++;
    switch (weighed.kind) {
      case 'malformed':
        this.counts.malformed++;
        return;
      case 'logged-ban':
        this.counts.banned++;
        return;
      case 'uncovered':
        this.counts[unknown.length > 0 ? 'unknown' : 'uncovered']++;
        return;
      case 'banned':
      case 'listed':
        this.counts.denied++;
        return;
      case 'allow':
        this.#allow(weighed, at);
        return;
      case 'deny':
        this.#deny(weighed, at);
        return;
      default:
        weighed satisfies never;
    }
  }

  get results(): readonly PolicyResult[] {
    return this.#policies.map((tally) => tally.result);
  }

  #allow(weighed: DecidedAs<'allow'>, at: Millis): void {
    const { shadowDenials, marks } = weighed.decision;
    this.counts.allowed++;
    for (const { policy, identity } of this.#see(weighed)) {
      const tally = this.#of(policy);
      if (shadowDenials.includes(policy)) tally.deny('shadowDenied', identity, at);
      else tally.counts[marks.includes(policy) ? 'marked' : 'allowed']++;
    }
  }

  #deny(weighed: DecidedAs<'deny'>, at: Millis): void {
    this.counts.denied++;
    this.#see(weighed);
    for (const { policy, bucket } of weighed.decision.violated)
      this.#of(policy).deny('denied', bucket.identity, at);
  }

  /** Notes the clients of a request. @returns its buckets, without that of the address for an unproven credential */
  #see({ spent }: Decided) {
    const buckets = spent.buckets.filter(({ counter }) => !counter.forUnproven);
    for (const { policy, identity } of buckets) this.#of(policy).seen.add(identity.digest);
    return buckets;
  }

  #of({ index }: Pick<Policy, 'index'>): PolicyTally {
    const tally = this.#policies[index];
    if (tally === undefined) throw new Error('a policy of another file');
    return tally;
  }
}

class PolicyTally {
  readonly #policy: Policy;
  readonly seen = new ClientCounts();
  readonly #denied = new ClientCounts();
  #firstDeniedAt: Millis | null = null;
  /** Requests that the policy counted. Of rows that share a bucket, the first one that matches counts a request. */
  readonly counts = {
    allowed: 0,
    denied: 0,
    /** Requests that it would have denied without shadow mode, and that it would have marked. */
    shadowDenied: 0,
    marked: 0,
    /** Requests for which the log does not have the client that this policy counts. */
    unknown: 0,
  };

  constructor(policy: Policy) {
    this.#policy = policy;
  }

  deny(as: 'denied' | 'shadowDenied', { digest }: Identity, at: Millis): void {
    this.counts[as]++;
    this.#firstDeniedAt ??= at;
    this.#denied.add(digest);
  }

  get result() {
    const { name, line, limit, windowSeconds, algorithm, mode } = this.#policy;
    return {
      name,
      line,
      limit,
      windowSeconds,
      algorithm,
      mode,
      ...this.counts,
      identities: this.seen.size,
      identitiesDenied: this.#denied.size,
      /** Whether there were too many clients to count all. Then the numbers of clients are lower bounds. */
      isEstimate: this.seen.isFull,
      /** ISO 8601; null if the policy denied nobody. */
      firstDeniedAt: this.#firstDeniedAt === null ? null : isoTime(this.#firstDeniedAt),
      mostDenied: this.#denied.most(SHOWN_MAX),
    };
  }
}

export type PolicyResult = Readonly<PolicyTally['result']>;
