/**
 * Reads how much a row of the file allows: requests per window, requests in flight, or a list of both. Each entry of a
 * list becomes a policy.
 */

import type { XStatic } from 'typebox/schema';
import { isUnit, UNIT_SECONDS } from '#gateway/algorithms/calendar.ts';
import { EVERYONE } from '#gateway/identity/identifier.ts';
import { secondsOf } from '#gateway/policy/duration.ts';
import { GROUPS, type GroupKey } from '#gateway/policy/groups.ts';
import type { Algorithm } from '#gateway/policy/policy.ts';
import type { Path, Report } from '#gateway/policy/problems.ts';
import { SHARES, type Share, sharedBy } from '#gateway/policy/shares.ts';
import type { Seconds } from '#shared/clock.ts';
import { algorithm, burst, checkAlgorithm, DISTINCT_MAX, tooManyValues } from './algorithm.ts';
import type { identifier } from './identifier.ts';
import { policyKey, propertiesOf } from './key.ts';
import { concurrency, limit } from './limit.ts';
import { overrides, overridesFile } from './overrides.ts';
import { window } from './window.ts';

/** The keys of a limit. They stand in a policy, or in the entries of its `limits`. */
export const QUOTA_KEYS = { limit, overrides, overridesFile, window, algorithm, burst, concurrency } as const;

const ENTRY_IDENTIFIER = {
  type: 'string',
  description: 'the clients that this limit counts, if they differ from those of its row, such as everyone',
} as const;

export const limits = policyKey({
  schema: {
    type: 'array',
    minItems: 1,
    maxItems: 8,
    items: {
      type: 'object',
      properties: { ...propertiesOf(QUOTA_KEYS), identifier: ENTRY_IDENTIFIER },
      additionalProperties: false,
      description: 'an entry of limits has limit and window, or concurrency',
    },
    description:
      'instead of limit and window: a list of 1 to 8 limits that all apply, such as { limit: 100, window: 1m } and { concurrency: 20 }',
  },
  more: 'See [Several limits in one policy](#several-limits-in-one-policy)',
});

type Entry = XStatic<typeof limits.schema>[number];
type WrittenIdentifier = XStatic<typeof identifier.schema>;

/** The limit of a group of clients. */
type GroupLimit = Pick<Entry, 'limit' | 'window' | 'algorithm' | 'burst'>;

interface Row extends Omit<Entry, 'identifier'>, Partial<Readonly<Record<GroupKey, GroupLimit>>> {
  readonly name: string;
  readonly bucket?: string;
  readonly identifier: WrittenIdentifier;
  readonly limits?: readonly Entry[];
  readonly distinct?: unknown;
  readonly cost?: unknown;
  readonly count?: unknown;
}

export interface RowLimit {
  readonly at: Path;
  readonly name: string;
  readonly bucket: string;
  readonly limit: number;
  readonly algorithm: Algorithm;
  readonly burst: number | null;
  /** The window as it is written in the file; empty for concurrency. */
  readonly window: string;
  readonly windowSeconds: Seconds;
  readonly overrides: Pick<Entry, 'overrides' | 'overridesFile'>;
  readonly identifier: WrittenIdentifier;
  /** The group that it counts, all of its clients together. null if it counts all clients. */
  readonly group: GroupKey | null;
  /** null if it is a whole limit. */
  readonly share: (Share & { readonly of: string }) | null;
}

const WINDOW_SECONDS_MAX = 366 * 86_400;
const NAME_LENGTH_MAX = 64;

const OF_AN_ENTRY = Object.keys(QUOTA_KEYS) as (keyof typeof QUOTA_KEYS)[];
const NOT_IN_FLIGHT = ['limit', 'window', 'algorithm', 'burst'] as const;

/** Returns the limits of a row: its own, those of its list, and those of groups with their shares. */
export function limitsOf(row: Row, here: Path, report: Report): RowLimit[] {
  const own = ownLimitsOf(row, here, report).map((limit) => ({ ...limit, group: null, share: null }));
  return [...own, ...GROUPS.flatMap(({ key }) => groupLimitsOf(key, row, here, report))];
}

function groupLimitsOf(group: GroupKey, row: Row, here: Path, report: Report): RowLimit[] {
  const { [group]: written, name, bucket = name } = row;
  if (written === undefined) return [];
  const full = fullName(name, group, here, report);
  if (row.distinct !== undefined)
    report(
      [...here, group],
      `${group} cannot be combined with distinct`,
      `write ${group} in a policy of its own`,
      'key',
    );
  const limit = quotaOf(written, [...here, group], full, `${bucket}.${group}`, report);
  const whole = { ...limit, identifier: EVERYONE.name, group, share: null };
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

type OwnLimit = Omit<RowLimit, 'group' | 'share'>;

function ownLimitsOf(row: Row, here: Path, report: Report): OwnLimit[] {
  const { limits, name, bucket = name } = row;
  const refuseFor = (reason: string): void => {
    for (const key of ['cost', 'count'] as const)
      if (row[key] !== undefined)
        report([...here, key], `${key} cannot be combined with ${reason}`, 'remove it', 'key');
  };
  if (row.distinct !== undefined) refuseFor('distinct');
  if (limits === undefined) {
    const limit = { ...limitOf(row, row, here, name, bucket, report), identifier: row.identifier };
    if (limit.algorithm === 'concurrency') refuseFor('concurrency');
    return [limit];
  }
  for (const key of OF_AN_ENTRY)
    if (row[key] !== undefined)
      report(
        [...here, key],
        `${key} cannot be combined with limits`,
        'write it in the entries of limits',
        'key',
      );
  const suffixes = new Set<string>();
  return limits.flatMap((entry, i) => {
    const at = [...here, 'limits', i];
    const window = entry.concurrency === undefined ? (entry.window ?? '') : 'concurrency';
    const suffix = entry.identifier === undefined ? window : `${entry.identifier.toLowerCase()}.${window}`;
    if (suffixes.has(suffix)) {
      report(
        at,
        `limits has two entries for ${entry.concurrency === undefined ? `a window of ${window}` : window}`,
        'keep one of them, or give them different identifiers',
      );
      return [];
    }
    suffixes.add(suffix);
    const full = fullName(name, suffix, here, report);
    const { identifier = row.identifier } = entry;
    return { ...limitOf(row, entry, at, full, `${bucket}.${suffix}`, report), identifier };
  });
}

function limitOf(
  { distinct }: Pick<Row, 'distinct'>,
  ...quota: Parameters<typeof quotaOf>
): ReturnType<typeof quotaOf> {
  const read = quotaOf(...quota);
  if (distinct !== undefined) checkValues(read, quota[4]);
  return read;
}

function quotaOf(
  entry: Omit<Entry, 'identifier'>,
  at: Path,
  name: string,
  bucket: string,
  report: Report,
): Omit<OwnLimit, 'identifier'> {
  const { limit = 1, window = '1s', concurrency, algorithm = 'fixed-window', burst } = entry;
  const base = { at, name, bucket, overrides: entry };
  if (concurrency !== undefined) {
    for (const key of NOT_IN_FLIGHT)
      if (entry[key] !== undefined)
        report(
          [...at, key],
          `${key} cannot be combined with concurrency`,
          'remove it, or write both as entries of limits',
          'key',
        );
    return {
      ...base,
      limit: concurrency,
      algorithm: 'concurrency',
      burst: null,
      window: '',
      windowSeconds: 0,
    };
  }
  if (isUnit(window)) {
    if (algorithm !== 'fixed-window')
      report(
        [...at, 'algorithm'],
        `a calendar ${window} cannot be a ${algorithm}`,
        'remove algorithm, or write a length such as 30d as the window',
        'key',
      );
    else if (burst !== undefined)
      report([...at, 'burst'], `a calendar ${window} cannot have a burst`, 'remove it', 'key');
    const windowSeconds = UNIT_SECONDS[window];
    return { ...base, limit, algorithm: 'calendar-window', burst: null, window, windowSeconds };
  }
  const windowSeconds = secondsOf(window);
  if (windowSeconds > WINDOW_SECONDS_MAX)
    report([...at, 'window'], `window ${window} is too long`, 'write at most 366d');
  checkAlgorithm({ algorithm, limit, burst, window }, windowSeconds * 1000, (key, ...mistake) =>
    report([...at, ...key], ...mistake),
  );
  return { ...base, limit, algorithm, burst: burst ?? null, window, windowSeconds };
}

/** Checks the limit of a row with `distinct`. Different values are counted in windows, up to a maximum. */
function checkValues({ algorithm, limit, at }: Omit<OwnLimit, 'identifier'>, report: Report): void {
  if (algorithm === 'concurrency')
    report(
      [...at, 'concurrency'],
      'concurrency cannot be combined with distinct',
      'write a policy of its own',
      'key',
    );
  else if (algorithm !== 'fixed-window' && algorithm !== 'calendar-window')
    report(
      [...at, 'algorithm'],
      `distinct counts in fixed or calendar windows, not in a ${algorithm}`,
      'remove algorithm',
    );
  else if (limit > DISTINCT_MAX) report([...at, 'limit'], ...tooManyValues(limit));
}
