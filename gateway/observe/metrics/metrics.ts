/**
 * Counts what the gateway does. The data plane only increments numbers; exposition.ts formats them. Policies may be
 * labels, identities never.
 */

import { counter, type Sample } from '#gateway/part/sample.ts';
import { GROUPS } from '#gateway/policy/groups.ts';
import { Counters } from './counters.ts';
import { Histogram } from './histogram.ts';
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

const CLIENTS_MAX = 256;

export class Metrics {
  readonly requests = new Counters<Outcome>({
    name: 'floodgate_requests_total',
    help: 'Requests by decision of the gateway.',
    label: 'outcome',
    kinds: ['uncovered', 'allowed', 'denied', 'unavailable', 'malformed', 'banned', 'undecided'],
  });
  /** By the class of a status, or the reason why there is none. */
  readonly replies = new Counters<string>({
    name: 'floodgate_replies_total',
    help: "Admitted requests by the class of the application's status; none: it did not answer, bound: a bound refused them after their admission.",
    label: 'status',
    kinds: ['1xx', '2xx', '3xx', '4xx', '5xx', 'none', 'bound'],
  });
  readonly decisions = new Counters<'allowed' | 'denied' | 'shadow_denied' | 'marked'>({
    name: 'floodgate_policy_decisions_total',
    help: 'Decisions by policy; shadow_denied would have been denied, marked passed with a mark.',
    label: 'decision',
    kinds: ['allowed', 'denied', 'shadow_denied', 'marked'],
    rows: 'policy',
  });
  /** By the name of a row with `ban`. */
  readonly bans = new Counters<'enforce' | 'shadow'>({
    name: 'floodgate_policy_bans_total',
    help: 'Clients that a policy has banned; in shadow mode, that it would have banned.',
    label: 'mode',
    kinds: ['enforce', 'shadow'],
    rows: 'policy',
  });
  /** Requests on routes of policies that count a group of clients, and those that its limits have denied. */
  readonly groups = GROUPS.map((words) => {
    const { visitors, denied } = words.metrics;
    return {
      words,
      visitors: new Counters<string>({
        ...visitors,
        label: 'client',
        kinds: [visitors.outside, visitors.inside],
      }),
      denied: new Counters({ ...denied, label: 'mode', kinds: ['enforce', 'shadow'] }),
    };
  });
  readonly units = new Counters<'reserved' | 'given_back' | 'beyond'>({
    name: 'floodgate_policy_units_total',
    help: 'Units of policies whose cost depends on replies: reserved when admitted, given_back or charged beyond when the reply began or ended.',
    label: 'kind',
    kinds: ['reserved', 'given_back', 'beyond'],
    rows: 'policy',
  });
  readonly unitsMissing = new Counters<string>({
    name: 'floodgate_policy_units_missing_total',
    help: 'Replies without the header that should report their units; the reserve stayed charged.',
    label: 'policy',
  });
  readonly degraded = new Counters<string>({
    name: 'floodgate_policy_degraded_total',
    help: 'Decisions by policy that were made without the store, allowed or denied.',
    label: 'policy',
  });
  /** Time from the arrival of a request to its decision, without the wait for its body. */
  readonly decisionTime = new Histogram(
    'floodgate_decision_duration_seconds',
    "Time that the gateway adds before it forwards or answers: from a request's arrival to its decision.",
  );
  readonly storeTime = new Histogram(
    'floodgate_store_duration_seconds',
    'The part of the decision time that is spent waiting for the store.',
  );
  /** It includes the wait for a connection. */
  readonly upstreamTime = new Histogram(
    'floodgate_upstream_duration_seconds',
    "From the decision to the beginning of the upstream's reply.",
  );
  readonly deniedFromMemory = counter(
    'floodgate_denied_from_memory_total',
    'Requests denied without asking the store: this process knew the bucket to be exhausted.',
    0,
  );
  readonly listed = new Counters<'allow' | 'deny'>({
    name: 'floodgate_listed_total',
    help: 'Requests of clients and to routes on the lists of the policy file.',
    label: 'list',
    kinds: ['allow', 'deny'],
  });
  readonly unreadBodies = counter(
    'floodgate_unread_bodies_total',
    'Requests of which a policy counts a field of the body, but the body is too large, encoded or of another type.',
    0,
  );
  readonly untrustedChains = counter(
    'floodgate_untrusted_chains_total',
    'Requests whose X-Forwarded-For chain could not be read.',
    0,
  );
  readonly reloads = counter('floodgate_policy_reloads_total', 'Policy files taken into use after start.', 0);
  readonly reloadFailures = counter(
    'floodgate_policy_reload_failures_total',
    'Policy files refused; the old table stayed.',
    0,
  );
  /** The clients denied most, each with the policy that denied it last. The other count is of admitted requests. */
  readonly limited = new Ranking(CLIENTS_MAX);

  samples(): Sample[] {
    for (const policy of this.decisions.rows) this.degraded.of(policy);
    const { requests, replies, decisions, bans, units, unitsMissing, degraded, listed } = this;
    const { decisionTime, storeTime, upstreamTime } = this;
    const ofGroups = this.groups.flatMap(({ visitors, denied }) => [visitors, denied]);
    const counted = [requests, replies, decisions, bans, ...ofGroups, units, unitsMissing, degraded, listed];
    const { deniedFromMemory, unreadBodies, untrustedChains, reloads, reloadFailures } = this;
    return [
      ...[...counted, decisionTime, storeTime, upstreamTime].flatMap((one) => one.samples()),
      ...[deniedFromMemory, unreadBodies, untrustedChains, reloads, reloadFailures],
    ];
  }
}
