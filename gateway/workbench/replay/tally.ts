/** Counts decisions for each policy. */
import type { Identity } from '#gateway/identity/digest.ts';
import type { Policy } from '#gateway/policy/policy.ts';
import type { PolicySet } from '#gateway/policy/policy-set.ts';
import type { DecidedAs } from '#gateway/workbench/rehearsal/rehearsed.ts';
import type { Millis } from '#shared/clock.ts';
import { ClientCounts, type Clients } from './clients.ts';
import type { Judged } from './judge.ts';

const SHOWN_MAX = 5;

export class Tally {
  readonly #policies: readonly PolicyTally[];
  allowed = 0;
  denied = 0;
  uncovered = 0;
  malformed = 0;
  /** Requests that a ban refused, according to the log. */
  banned = 0;
  /** Requests with policies none of which can be decided. */
  unknown = 0;

  /** @param clients of the run */
  constructor({ policies }: PolicySet, clients: Clients) {
    this.#policies = policies.map((policy) => new PolicyTally(policy, clients));
  }

  add({ weighed, unknown }: Judged, at: Millis): void {
    for (const { index } of unknown) this.#of(index).counts.unknown++;
    switch (weighed.kind) {
      case 'malformed':
        this.malformed++;
        return;
      case 'logged-ban':
        this.banned++;
        return;
      case 'uncovered':
        if (unknown.length > 0) this.unknown++;
        else this.uncovered++;
        return;
      case 'banned':
      case 'listed':
        this.denied++;
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

  #allow({ spent, decision: { shadowDenials, marks } }: DecidedAs<'allow'>, at: Millis): void {
    this.allowed++;
    for (const { counter, policy, identity } of spent.buckets) {
      // The charge of the address for an unproven credential belongs to the same request.
      if (counter.forUnproven) continue;
      const tally = this.#of(policy.index);
      tally.seen.add(identity.digest);
      if (shadowDenials.includes(policy)) {
        tally.counts.shadowDenied++;
        tally.deny(identity, at);
      } else if (marks.includes(policy)) tally.counts.marked++;
      else tally.counts.allowed++;
    }
  }

  #deny({ spent, decision }: DecidedAs<'deny'>, at: Millis): void {
    this.denied++;
    for (const { counter, policy, identity } of spent.buckets) {
      if (!counter.forUnproven) this.#of(policy.index).seen.add(identity.digest);
    }
    for (const { policy, bucket } of decision.violated) {
      const tally = this.#of(policy.index);
      tally.counts.denied++;
      tally.deny(bucket.identity, at);
    }
  }

  #of(index: number): PolicyTally {
    const tally = this.#policies[index];
    if (tally === undefined) throw new Error('a policy of another file');
    return tally;
  }
}

class PolicyTally {
  readonly #policy: Policy;
  readonly #clients: Clients;
  readonly seen: ClientCounts;
  readonly #denied: ClientCounts;
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

  constructor(policy: Policy, clients: Clients) {
    this.#policy = policy;
    this.#clients = clients;
    this.seen = new ClientCounts(clients);
    this.#denied = new ClientCounts(clients);
  }

  deny({ digest }: Identity, at: Millis): void {
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
      isEstimate: this.#clients.isFull,
      /** ISO 8601; null if the policy denied nobody. */
      firstDeniedAt: this.#firstDeniedAt === null ? null : new Date(this.#firstDeniedAt).toISOString(),
      mostDenied: this.#denied.most(SHOWN_MAX),
    };
  }
}

export type PolicyResult = Readonly<PolicyTally['result']>;
