/**
 * Counts what the gateway does. The data plane only increments numbers; exposition.ts formats them. Policies may be
 * labels, identities never.
 */

import { counter, type Sample } from '#gateway/part/sample.ts';
import { GROUPS, type GroupWords } from '#gateway/policy/groups.ts';
import type { Policy } from '#gateway/policy/policy.ts';
import type { Millis } from '#shared/clock.ts';
import { DURATION_BOUNDS_SECONDS, Histogram } from './histogram.ts';
import { Ranking } from './ranking.ts';

export type Outcome =
  | 'uncovered'
  | 'allowed'
  | 'denied'
  /** Refused because the store is unavailable and a policy has `onStoreFailure: deny`. */
  | 'unavailable'
  | 'malformed'
  | 'banned'
  /** Ended before the decision: the gateway waited for the body, or for the proof of a key. */
  | 'undecided';

type PolicyDecision = 'allowed' | 'denied' | 'shadowDenied' | 'marked';

interface PolicyCounts {
  allowed: number;
  denied: number;
  shadowDenied: number;
  marked: number;
  /** Labels of the policy's samples. They are made only once, because samples are read every second. */
  readonly labels: Readonly<Record<'policy' | PolicyDecision, Sample['labels']>>;
}

/** Counts for a policy whose cost depends on replies: units, and replies that did not report them. */
interface UnitCounts {
  reserved: number;
  givenBack: number;
  beyond: number;
  missing: number;
}

interface GroupCounts {
  /** Admitted requests of its clients, and of others. */
  inside: number;
  outside: number;
  /** Requests that its limits have denied, or would have denied without shadow mode. */
  enforce: number;
  shadow: number;
}

const UNITS_HELP =
  'Units of policies whose cost depends on replies: reserved when admitted, given_back or charged beyond when the reply began or ended.';
const MISSING_HELP = 'Replies without the header that should report their units; the reserve stayed charged.';
const BANS_HELP = 'Clients that a policy has banned; in shadow mode, that it would have banned.';
const DECISIONS_HELP =
  'Decisions by policy; shadow_denied would have been denied, marked passed with a mark.';
const REPLIES_HELP =
  "Admitted requests by the class of the application's status; none: it did not answer, bound: a bound refused them after their admission.";
const DEGRADED_HELP = 'Decisions by policy that were made without the store, allowed or denied.';

const CLIENTS_MAX = 256;

export class Metrics {
  readonly #outcomes: Record<Outcome, number> = {
    uncovered: 0,
    allowed: 0,
    denied: 0,
    unavailable: 0,
    malformed: 0,
    banned: 0,
    undecided: 0,
  };
  /** Key: the class of a status, or the reason why there is none. */
  readonly #replies: Record<string, number> = {
    '1xx': 0,
    '2xx': 0,
    '3xx': 0,
    '4xx': 0,
    '5xx': 0,
    none: 0,
    bound: 0,
  };
  /** Key: policy name, so that counts survive a reload. Bounded by the number of names in policy files. */
  readonly #policies = new Map<string, PolicyCounts>();
  readonly #degraded = new Map<string, number>();
  /** Denials without asking the store, because this process knew that the bucket is exhausted. */
  deniedFromMemory = 0;
  /** The clients denied most, each with the policy that denied it last. The other count is of admitted requests. */
  readonly limited = new Ranking(CLIENTS_MAX);
  readonly listed = { allow: 0, deny: 0 };
  /** Key: name of a row with `ban`. */
  readonly #bans = new Map<string, Record<'enforce' | 'shadow', number>>();
  /** Requests whose policies count a field of the body, which the gateway did not read. */
  unreadBodies = 0;
  /** Key: name of a policy whose cost depends on replies. */
  readonly #units = new Map<string, UnitCounts>();
  /** Requests on routes of policies that count a group of clients. */
  readonly groups = new Map<GroupWords, GroupCounts>(
    GROUPS.map((words) => [words, { inside: 0, outside: 0, enforce: 0, shadow: 0 }]),
  );
  untrustedChains = 0;
  reloads = 0;
  reloadFailures = 0;
  /** Time from the arrival of a request to its decision, without the wait for its body. */
  readonly #decisionTime = new Histogram();
  /** The part of it that is spent waiting for the store. */
  readonly #storeTime = new Histogram();
  /** Time from the decision to the start of the upstream's reply, including the wait for a connection. */
  readonly upstreamTime = new Histogram();

  count(outcome: Outcome): void {
    this.#outcomes[outcome]++;
  }

  /** Counts a decision of one policy. */
  countPolicy(policy: Policy, decision: PolicyDecision): void {
    this.#of(policy)[decision]++;
  }

  /** Counts a request once for each group whose limits deny it. */
  groupsDenied(denying: readonly Pick<Policy, 'onlyFor'>[], mode: 'enforce' | 'shadow'): void {
    for (const [words, counts] of this.groups)
      if (denying.some(({ onlyFor }) => onlyFor?.words === words)) counts[mode]++;
  }

  /** @param ms time from the arrival to the decision, without the wait for the body */
  decided(ms: Millis): void {
    this.#decisionTime.observe(ms);
  }

  storeAnswered(ms: Millis): void {
    this.#storeTime.observe(ms);
  }

  /**
   * @param status of the application's reply; `none` if it did not answer, `bound` if a bound of the gateway refused the
   * request
   */
  replied(status: number | 'none' | 'bound'): void {
    const name = typeof status === 'number' ? `${Math.floor(status / 100)}xx` : status;
    this.#replies[name] = (this.#replies[name] ?? 0) + 1;
  }

  banned(row: string, mode: 'enforce' | 'shadow'): void {
    const counts = this.#bans.get(row) ?? { enforce: 0, shadow: 0 };
    counts[mode]++;
    this.#bans.set(row, counts);
  }

  /** Counts the units of a request. Called when they are settled. */
  settled({ name }: Policy, reserved: number, units: number, lacksUnits: boolean): void {
    let counts = this.#units.get(name);
    if (counts === undefined) {
      counts = { reserved: 0, givenBack: 0, beyond: 0, missing: 0 };
      this.#units.set(name, counts);
    }
    counts.reserved += reserved;
    counts.givenBack += Math.max(0, reserved - units);
    counts.beyond += Math.max(0, units - reserved);
    if (lacksUnits) counts.missing++;
  }

  degraded(policy: Policy): void {
    // Add the policy, so that it appears in samples(), even if it never gets another count.
    this.#of(policy);
    this.#degraded.set(policy.name, (this.#degraded.get(policy.name) ?? 0) + 1);
  }

  samples(): Sample[] {
    const samples: Sample[] = Object.entries(this.#outcomes).map(([outcome, value]) => ({
      name: 'floodgate_requests_total',
      help: 'Requests by decision of the gateway.',
      type: 'counter',
      labels: { outcome },
      value,
    }));
    for (const [status, value] of Object.entries(this.#replies))
      samples.push(counter('floodgate_replies_total', REPLIES_HELP, value, { status }));
    for (const { allowed, denied, shadowDenied, marked, labels } of this.#policies.values()) {
      samples.push(
        counter('floodgate_policy_decisions_total', DECISIONS_HELP, allowed, labels.allowed),
        counter('floodgate_policy_decisions_total', DECISIONS_HELP, denied, labels.denied),
        counter('floodgate_policy_decisions_total', DECISIONS_HELP, shadowDenied, labels.shadowDenied),
        counter('floodgate_policy_decisions_total', DECISIONS_HELP, marked, labels.marked),
      );
    }
    for (const [policy, counts] of this.#bans)
      for (const [mode, value] of Object.entries(counts))
        samples.push(counter('floodgate_policy_bans_total', BANS_HELP, value, { policy, mode }));
    for (const [{ metrics }, counts] of this.groups) {
      const { visitors, denied } = metrics;
      for (const place of ['outside', 'inside'] as const)
        samples.push(counter(visitors.name, visitors.help, counts[place], { client: visitors[place] }));
      for (const mode of ['enforce', 'shadow'] as const)
        samples.push(counter(denied.name, denied.help, counts[mode], { mode }));
    }
    for (const [policy, { reserved, givenBack, beyond, missing }] of this.#units) {
      for (const [kind, value] of Object.entries({ reserved, given_back: givenBack, beyond }))
        samples.push(counter('floodgate_policy_units_total', UNITS_HELP, value, { policy, kind }));
      samples.push(counter('floodgate_policy_units_missing_total', MISSING_HELP, missing, { policy }));
    }
    for (const [policy, { labels }] of this.#policies) {
      const value = this.#degraded.get(policy) ?? 0;
      samples.push(counter('floodgate_policy_degraded_total', DEGRADED_HELP, value, labels.policy));
    }
    samples.push(
      ...histogram(
        'floodgate_decision_duration_seconds',
        "Time that the gateway adds before it forwards or answers: from a request's arrival to its decision.",
        this.#decisionTime,
      ),
      ...histogram(
        'floodgate_store_duration_seconds',
        'The part of the decision time that is spent waiting for the store.',
        this.#storeTime,
      ),
      ...histogram(
        'floodgate_upstream_duration_seconds',
        "From the decision to the beginning of the upstream's reply.",
        this.upstreamTime,
      ),
      counter(
        'floodgate_denied_from_memory_total',
        'Requests denied without asking the store: this process knew the bucket to be exhausted.',
        this.deniedFromMemory,
      ),
      ...Object.entries(this.listed).map(([list, value]) =>
        counter(
          'floodgate_listed_total',
          'Requests of clients and to routes on the lists of the policy file.',
          value,
          {
            list,
          },
        ),
      ),
      counter(
        'floodgate_unread_bodies_total',
        'Requests of which a policy counts a field of the body, but the body is too large, encoded or of another type.',
        this.unreadBodies,
      ),
      counter(
        'floodgate_untrusted_chains_total',
        'Requests whose X-Forwarded-For chain could not be read.',
        this.untrustedChains,
      ),
      counter('floodgate_policy_reloads_total', 'Policy files taken into use after start.', this.reloads),
      counter(
        'floodgate_policy_reload_failures_total',
        'Policy files refused; the old table stayed.',
        this.reloadFailures,
      ),
    );
    return samples;
  }

  #of(policy: Policy): PolicyCounts {
    let counts = this.#policies.get(policy.name);
    if (counts === undefined) {
      const { name } = policy;
      const labels = {
        policy: { policy: name },
        allowed: { policy: name, decision: 'allowed' },
        denied: { policy: name, decision: 'denied' },
        shadowDenied: { policy: name, decision: 'shadow_denied' },
        marked: { policy: name, decision: 'marked' },
      };
      counts = { allowed: 0, denied: 0, shadowDenied: 0, marked: 0, labels };
      this.#policies.set(policy.name, counts);
    }
    return counts;
  }
}

function histogram(name: string, help: string, { counts, sumMs }: Histogram): Sample[] {
  const sample = (
    suffix: NonNullable<Sample['suffix']>,
    value: number,
    labels: Record<string, string> = {},
  ): Sample => ({
    name,
    help,
    type: 'histogram',
    labels,
    value,
    suffix,
  });
  let count = 0;
  const buckets = DURATION_BOUNDS_SECONDS.map((le, i) => {
    count += counts[i] ?? 0;
    return sample('_bucket', count, { le: String(le) });
  });
  count += counts[counts.length - 1] ?? 0;
  return [
    ...buckets,
    sample('_bucket', count, { le: '+Inf' }),
    sample('_sum', sumMs / 1000),
    sample('_count', count),
  ];
}
