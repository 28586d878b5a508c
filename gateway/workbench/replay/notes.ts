/** Remarks on how exact the figures of a replay are. */

import type { PolicySet } from '#gateway/policy/policy-set.ts';
import { count, counted } from '#gateway/workbench/number-text.ts';
import { CLIENTS_MAX } from './clients.ts';
import type { PolicyResult } from './tally.ts';

interface Circumstances {
  readonly set: PolicySet;
  readonly results: readonly PolicyResult[];
  /** Requests that came too late in the log for their time. */
  readonly late: number;
  /** Logs that ended too early, with the reason. */
  readonly cutShort: readonly string[];
  /** Requests with X-Forwarded-For although no proxy is trusted. */
  readonly chained: number;
  /** Requests in flight whose duration is not in the log. */
  readonly endless: number;
  /** Whether the log is from Floodgate, with digests. */
  readonly hasDigests: boolean;
  /** Whether counters were dropped because the table was full. */
  readonly isFull: boolean;
}

export function notesOf({
  set,
  results,
  late,
  cutShort,
  chained,
  endless,
  hasDigests,
  isFull,
}: Circumstances): string[] {
  const notes = unknownNotes(set, results);
  if (chained > 0)
    notes.push(
      `X-Forwarded-For, which ${counted(chained, 'request')} had, was not used; give --trusted-proxies as GATEWAY_TRUSTED_PROXIES is set`,
    );
  if (endless > 0)
    notes.push(
      `limits of requests in flight need the duration of each request; ${counted(endless, 'request')} without one, or denied in the log, were treated as ending at once`,
    );
  if (hasDigests && goesBeyondDigests(set))
    notes.push(
      'overrides and lists by address or User-Agent are ignored, because the log has only digests; name clients by digest or plan',
    );
  for (const { name, cost } of set.policies)
    if (cost.kind === 'reply-header')
      notes.push(
        `logs do not report the units of replies, so each request under ${name} counts ${cost.reserve}, its reserve`,
      );
  if (set.policies.some(({ ban }) => ban !== null))
    notes.push('bans by policies are ignored: a banned client appears as denied by the policy');
  if (set.protect !== null)
    notes.push('protect is ignored: a log does not show how many requests the application can handle');
  if (late > 0)
    notes.push(
      `${counted(late, 'request')} came so late after younger ones that they were counted at the time of those`,
    );
  for (const log of cutShort) notes.push(`${log}; the lines before are counted`);
  if (isFull)
    notes.push(
      'there were more counters than are remembered (4,194,304); the least recently used were dropped, so long windows may deny too little',
    );
  if (results.some(({ isEstimate }) => isEstimate))
    notes.push(
      `there were more clients than are counted (${count(CLIENTS_MAX)}), so the numbers of clients are too low`,
    );
  return notes;
}

function goesBeyondDigests({ policies, lists }: PolicySet): boolean {
  return (
    (lists !== null && lists.networks.size + lists.programs.size > 0) ||
    policies.some(
      ({ overrides }) => overrides !== null && overrides.networks.size + overrides.programs.size > 0,
    )
  );
}

function unknownNotes({ policies }: PolicySet, results: readonly PolicyResult[]): string[] {
  const most = new Map<string, number>();
  for (const [i, { unknown }] of results.entries()) {
    const name = policies[i]?.identifier.name ?? '';
    if (unknown > 0) most.set(name, (most.get(name) ?? 0) + unknown);
  }
  return [...most].map(
    ([name, unknown]) =>
      `policies by ${name} were skipped for ${counted(unknown, 'request')}, because the log does not have it`,
  );
}
