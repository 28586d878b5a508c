/**
 * Reads how much a row of the file allows: requests per window, requests in flight, or a list of both. Each entry of a
 * list becomes a policy.
 */

import { isUnit, UNIT_SECONDS } from '#gateway/algorithms/calendar.ts';
import type { Seconds } from '#shared/clock.ts';
import { secondsOf } from './duration.ts';
import { checkAlgorithm } from './load-algorithm.ts';
import type { Algorithm } from './policy.ts';
import type { Path, Report } from './problems.ts';
import type { PolicyFile } from './schema.ts';

type Row = PolicyFile['policies'][number];
type Entry = NonNullable<Row['limits']>[number];

interface RowLimit {
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
  readonly identifier: Row['identifier'];
}

const WINDOW_SECONDS_MAX = 366 * 86_400;
const NAME_LENGTH_MAX = 64;

/** Keys that must be in the entries of `limits`, if there are entries. */
const OF_AN_ENTRY = [
  'limit',
  'window',
  'concurrency',
  'algorithm',
  'burst',
  'overrides',
  'overridesFile',
] as const;
const NOT_IN_FLIGHT = ['limit', 'window', 'algorithm', 'burst'] as const;

export function limitsOf(row: Row, here: Path, report: Report): RowLimit[] {
  const { limits, name, bucket = name } = row;
  if (limits === undefined) {
    const limit = { ...limitOf(row, here, name, bucket, report), identifier: row.identifier };
    if (limit.algorithm !== 'concurrency') return [limit];
    for (const key of ['cost', 'count'] as const)
      if (row[key] !== undefined)
        report([...here, key], `${key} cannot be combined with concurrency`, 'remove it', 'key');
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
    const full = `${name}.${suffix}`;
    if (full.length > NAME_LENGTH_MAX)
      report(
        [...here, 'name'],
        `${full} has more than ${NAME_LENGTH_MAX} characters`,
        'write a shorter name: each limit has a name of its own, which ends in its window',
      );
    const { identifier = row.identifier } = entry;
    return { ...limitOf(entry, at, full, `${bucket}.${suffix}`, report), identifier };
  });
}

function limitOf(
  entry: Omit<Entry, 'identifier'>,
  at: Path,
  name: string,
  bucket: string,
  report: Report,
): Omit<RowLimit, 'identifier'> {
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
  checkAlgorithm({ algorithm, limit, burst, window }, windowSeconds * 1000, (key, message, fix, point) =>
    report([...at, key], message, fix, point),
  );
  return { ...base, limit, algorithm, burst: burst ?? null, window, windowSeconds };
}
