/**
 * Reads how much a row of the file allows: requests per window, requests in flight, or a list of both. Each entry of a
 * list becomes a policy.
 */

import type { XStatic } from 'typebox/schema';
import { isUnit, UNIT_SECONDS } from '#gateway/algorithms/calendar.ts';
import { ALGORITHMS } from '#gateway/algorithms/table.ts';
import { EVERYONE } from '#gateway/identity/identifier.ts';
import { GROUPS, type GroupKey, SHARES, type Share, sharedBy } from '#gateway/policy/groups.ts';
import type { Algorithm } from '#gateway/policy/policy.ts';
import { type Path, type Report, refuseKeys } from '#gateway/policy/problems.ts';
import type { Seconds } from '#shared/clock.ts';
import { checkValues } from './distinct.ts';
import type { identifier } from './identifier-keys.ts';
import { policyKey, propertiesOf } from './key.ts';
import { QUOTA_KEYS } from './quota-keys.ts';
import { object, secondsWithin, some, text } from './schema-parts.ts';

export const limits = policyKey({
  schema: some(
    object(
      [],
      {
        ...propertiesOf(QUOTA_KEYS),
        identifier: text(
          'the clients that this limit counts, if they are others than those of its row, such as everyone',
        ),
      },
      'an entry of limits has limit and window, or concurrency',
    ),
    8,
    'instead of limit and window: a list of 1 to 8 limits that all apply, such as { limit: 100, window: 1m } and { concurrency: 20 }',
  ),
  see: '#several-limits-in-one-policy',
});

type Entry = XStatic<typeof limits.schema>[number];
type WrittenIdentifier = XStatic<typeof identifier.schema>;

interface Row
  extends Omit<Entry, 'identifier'>,
    Partial<Readonly<Record<GroupKey, Omit<Entry, 'identifier'>>>> {
  readonly name: string;
  readonly bucket?: string;
  readonly identifier: WrittenIdentifier;
  readonly limits?: readonly Entry[];
  readonly distinct?: unknown;
  readonly cost?: unknown;
  readonly count?: unknown;
}

interface Quota {
  readonly limit: number;
  readonly algorithm: Algorithm;
  readonly burst: number | null;
  /** The window as it is written in the file; empty for concurrency. */
  readonly window: string;
  readonly windowSeconds: Seconds;
}

export interface RowLimit extends Quota {
  readonly at: Path;
  readonly name: string;
  readonly bucket: string;
  readonly overrides: Pick<Entry, 'overrides' | 'overridesFile'>;
  readonly identifier: WrittenIdentifier;
  /** The group that it counts, all of its clients together. null if it counts all clients. */
  readonly group: GroupKey | null;
  /** null if it is a whole limit. */
  readonly share: (Share & { readonly of: string }) | null;
}

const NAME_LENGTH_MAX = 64;
const OF_AN_ENTRY = Object.keys(QUOTA_KEYS) as (keyof typeof QUOTA_KEYS)[];
const NOT_IN_FLIGHT = ['limit', 'window', 'algorithm', 'burst'] as const;

/** Returns the limits of a row: its own, those of its list, and those of groups with their shares. */
export function limitsOf(row: Row, here: Path, report: Report): RowLimit[] {
  const own = row.limits === undefined ? [ownLimitOf(row, here, report)] : listedLimitsOf(row, here, report);
  if (row.distinct !== undefined) {
    refuseKeys(row, ['cost', 'count'], here, report, 'cannot be combined with distinct', 'remove it');
    for (const limit of own) checkValues(limit, report);
  }
  return [...own, ...GROUPS.flatMap(({ key }) => groupLimitsOf(key, row, here, report))];
}

function ownLimitOf(row: Row, here: Path, report: Report): RowLimit {
  const { name, bucket = name, identifier } = row;
  const quota = quotaOf(row, here, report);
  if (quota.algorithm === 'concurrency' && row.distinct === undefined)
    refuseKeys(row, ['cost', 'count'], here, report, 'cannot be combined with concurrency', 'remove it');
  return { ...quota, at: here, name, bucket, overrides: row, identifier, group: null, share: null };
}

function listedLimitsOf(row: Row, here: Path, report: Report): RowLimit[] {
  const { limits = [], name, bucket = name } = row;
  const fix = 'write it in the entries of limits';
  refuseKeys(row, OF_AN_ENTRY, here, report, 'cannot be combined with limits', fix);
  const suffixes = new Set<string>();
  return limits.flatMap((entry, i) => {
    const at = [...here, 'limits', i];
    const { concurrency, identifier = row.identifier } = entry;
    const window = concurrency === undefined ? (entry.window ?? '') : 'concurrency';
    const suffix = entry.identifier === undefined ? window : `${entry.identifier.toLowerCase()}.${window}`;
    if (suffixes.has(suffix)) {
      const what = concurrency === undefined ? `a window of ${window}` : window;
      const keep = 'keep one of them, or give them different identifiers';
      report(at, `limits has two entries for ${what}`, keep);
      return [];
    }
    suffixes.add(suffix);
    const named = { name: fullName(name, suffix, here, report), bucket: `${bucket}.${suffix}`, identifier };
    return { ...quotaOf(entry, at, report), ...named, at, overrides: entry, group: null, share: null };
  });
}

function groupLimitsOf(group: GroupKey, row: Row, here: Path, report: Report): RowLimit[] {
  const { [group]: written, name, bucket = name } = row;
  if (written === undefined) return [];
  if (row.distinct !== undefined) {
    const fix = `write ${group} in a policy of its own`;
    refuseKeys(row, [group], here, report, 'cannot be combined with distinct', fix);
  }
  const at = [...here, group];
  const whole = {
    ...quotaOf(written, at, report),
    at,
    name: fullName(name, group, here, report),
    bucket: `${bucket}.${group}`,
    overrides: {},
    identifier: EVERYONE.name,
    group,
    share: null,
  };
  const shares = SHARES.map((share) => ({
    ...whole,
    name: fullName(name, `${group}.${share.name}`, here, report),
    bucket: `${whole.bucket}.${share.name}`,
    limit: sharedBy(share, whole.limit),
    burst: whole.burst === null ? null : sharedBy(share, whole.burst),
    share: { ...share, of: whole.bucket },
  }));
  return [whole, ...shares];
}

/** Each limit of a row has a name of its own. */
function fullName(name: string, suffix: string, here: Path, report: Report): string {
  const full = `${name}.${suffix}`;
  if (full.length > NAME_LENGTH_MAX)
    report(
      [...here, 'name'],
      `${full} has more than ${NAME_LENGTH_MAX} characters`,
      `write a shorter name: each limit has a name of its own, which ends in its window or in ${GROUPS.map(({ key }) => key).join(' or ')}`,
    );
  return full;
}

function quotaOf(entry: Omit<Entry, 'identifier'>, at: Path, report: Report): Quota {
  const { limit = 1, window = '1s', concurrency, algorithm = 'fixed-window', burst } = entry;
  if (concurrency !== undefined) {
    const fix = 'remove it, or write both as entries of limits';
    refuseKeys(entry, NOT_IN_FLIGHT, at, report, 'cannot be combined with concurrency', fix);
    return { limit: concurrency, algorithm: 'concurrency', burst: null, window: '', windowSeconds: 0 };
  }
  const isCalendar = isUnit(window);
  const seconds = isCalendar
    ? UNIT_SECONDS[window]
    : secondsWithin('366d', window, [...at, 'window'], report);
  if (isCalendar && algorithm !== 'fixed-window') {
    const fix = 'remove it, or write a length such as 30d as the window';
    refuseKeys(entry, ['algorithm'], at, report, `${algorithm} has no calendar ${window}`, fix);
  } else if (algorithm !== 'token-bucket') {
    const fix = 'remove it, or write algorithm: token-bucket';
    refuseKeys(entry, ['burst'], at, report, 'is only for algorithm: token-bucket', fix);
  }
  const countable = ALGORITHMS[algorithm].limitMax(seconds * 1000);
  for (const [key, value] of Object.entries({ limit, burst: burst ?? 0 }))
    if (value > countable)
      report(
        [...at, key],
        `${key} ${value} is more than ${algorithm} can count in ${window}`,
        `write at most ${countable}, or a shorter window`,
      );
  const quota = { limit, algorithm, burst: burst ?? null, window, windowSeconds: seconds };
  return isCalendar ? { ...quota, algorithm: 'calendar-window', burst: null } : quota;
}
