/** Remarks on how exact the figures of a replay are. */
import { isPresented } from '#gateway/identity/identifier.ts';

import { exemptBy } from '#gateway/policy/match.ts';
import { type PolicySet, usesHosts } from '#gateway/policy/policy-set.ts';
import { regularsIn } from '#gateway/policy/regulars.ts';
import { count, counted } from '#gateway/workbench/number-text.ts';
import { CLIENTS_MAX } from './client-counts.ts';
import type { Judge } from './judge.ts';
import type { LogFiles } from './log-files.ts';
import type { PolicyResult } from './tally.ts';

interface Run {
  readonly set: PolicySet;
  readonly results: readonly PolicyResult[];
  readonly logs: Pick<LogFiles, 'late' | 'cutShort'>;
  readonly judge: Pick<Judge, 'unreadChains' | 'learning' | 'isFull'>;
  /** Requests with X-Forwarded-For although no proxy is trusted. */
  readonly chained: number;
  /** Whether the log is from Floodgate, with digests. */
  readonly hasDigests: boolean;
}

/** Parts of a policy file that a replay leaves out. */
const IGNORED: readonly (readonly [
  what: string,
  isUsed: (set: PolicySet, hasDigests: boolean) => boolean,
])[] = [
  ['hosts', usesHosts],
  ['concurrency', ({ policies }) => policies.some(({ algorithm }) => algorithm === 'concurrency')],
  ['userAgent', ({ policies }) => policies.some(({ userAgent }) => userAgent !== null)],
  ['query', ({ policies }, hasDigests) => hasDigests && policies.some(({ query }) => query !== null)],
  ['overrides and lists by address or User-Agent', (set, hasDigests) => hasDigests && goesBeyondDigests(set)],
  ['regulars.never', (set, hasDigests) => hasDigests && (regularsIn(set)?.never ?? null) !== null],
  ['bans', ({ policies }) => policies.some(({ ban }) => ban !== null)],
  ['protect', ({ protect }) => protect !== null],
];

export function notesOf({ set, results, logs, judge, chained, hasDigests }: Run): string[] {
  const { late, cutShort } = logs;
  const { unreadChains, isFull, learning } = judge;
  const ignored = IGNORED.flatMap(([what, isUsed]) => (isUsed(set, hasDigests) ? [what] : []));
  const notes: readonly (readonly [applies: boolean, note: string])[] = [
    [
      chained > 0,
      `X-Forwarded-For, which ${counted(chained, 'request')} had, was not used; give --trusted-proxies as GATEWAY_TRUSTED_PROXIES is set`,
    ],
    [
      unreadChains > 0,
      `X-Forwarded-For of ${counted(unreadChains, 'request')} names no client behind these --trusted-proxies; as in the gateway, they count as one client`,
    ],
    [ignored.length > 0, `these are ignored, because the log does not show enough: ${ignored.join(', ')}`],
    ...set.policies.map((policy) => costNote(policy, hasDigests)),
    [learning.note !== null, learning.note ?? ''],
    [
      late > 0,
      `${counted(late, 'request')} came so late after younger ones that they were counted at the time of those`,
    ],
    ...cutShort.map((log) => [true, `${log}; the lines before are counted`] as const),
    [
      isFull,
      'there were more counters than are remembered (4,194,304); the least recently used were dropped, so long windows may deny too little',
    ],
    [
      results.some(({ isEstimate }) => isEstimate),
      `there were more clients than are counted (${count(CLIENTS_MAX)}), so the numbers of clients are too low`,
    ],
  ];
  return [...unknownNotes(set, results), ...notes.flatMap(([applies, note]) => (applies ? [note] : []))];
}

function costNote(
  { name, cost }: PolicySet['policies'][number],
  hasDigests: boolean,
): readonly [applies: boolean, note: string] {
  const note = (what: string): string => `each request under ${name} costs ${what}`;
  switch (cost.kind) {
    case 'reply-header':
      return [true, note(`${cost.reserve}, its reserve, because logs do not report the units of replies`)];
    case 'reply-bytes':
      return [true, note('the bytes of its reply in the log, or the reserve where the log has none')];
    default:
      return [
        cost.kind === 'body-bytes' || (cost.kind === 'header' && hasDigests),
        note('1, because the log does not have what it costs'),
      ];
  }
}

function goesBeyondDigests({ policies, lists }: PolicySet): boolean {
  const isListed = lists?.clients.some(
    ({ clients: { networks, named, programs } }) => networks.size + named.size + programs.size > 0,
  );
  const isOverridden = policies.some(({ overrides }) => {
    const { networks, programs } = overrides?.clients ?? {};
    return (networks?.size ?? 0) + (programs?.size ?? 0) > 0;
  });
  return isListed === true || isOverridden;
}

function unknownNotes({ policies }: PolicySet, results: readonly PolicyResult[]): string[] {
  const most = new Map<string, number>();
  const strangers: string[] = [];
  for (const [i, { unknown }] of results.entries()) {
    const policy = policies[i];
    // A share of a limit counts like the limit itself.
    if (policy === undefined || policy.shareOf !== null || unknown === 0) continue;
    const { name, identifier, distinct } = policy;
    const keys = exemptBy(policy).map((one) => one.name);
    const by = distinct === null ? identifier.name : `${identifier.name} and different ${distinct.name}`;
    if (keys.length === 0 || distinct !== null || isPresented(identifier))
      most.set(by, (most.get(by) ?? 0) + unknown);
    else
      strangers.push(
        `${name} counted ${counted(unknown, 'request')} with or without ${keys.join(' or ')}, because the log does not have it`,
      );
  }
  const skipped = [...most].map(
    ([name, unknown]) =>
      `policies by ${name} were skipped for ${counted(unknown, 'request')}, because the log does not have it`,
  );
  return [...skipped, ...strangers];
}
