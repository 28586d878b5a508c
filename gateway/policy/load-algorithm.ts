/** Checks of algorithm and cost that the schema cannot express. */
import type { Millis } from '#shared/clock.ts';
import type { Algorithm, Cost, Policy } from './policy.ts';
import type { Path } from './problems.ts';
import type { PolicyFile } from './schema.ts';

type PolicyRow = PolicyFile['policies'][number];

interface WindowLimit {
  readonly algorithm: Algorithm;
  readonly limit: number;
  readonly burst: number | undefined;
  readonly window: string;
}

/** Half of Number.MAX_SAFE_INTEGER, so that sums of two values stay exact. */
const UNITS_MAX = 2 ** 52;

/**
 * Checks the algorithm. Sliding windows and token buckets count requests times milliseconds, which must stay a safe
 * integer.
 */
export function checkAlgorithm(
  { algorithm, limit, burst, window }: WindowLimit,
  windowMs: Millis,
  report: (key: string, message: string, fix: string, point?: 'key') => void,
): void {
  if (burst !== undefined && algorithm !== 'token-bucket') {
    report('burst', 'burst is only for algorithm: token-bucket', 'remove it, or add that line', 'key');
    return;
  }
  if (algorithm === 'fixed-window') return;
  const limitMax = countableIn(windowMs);
  for (const [key, value] of Object.entries({ limit, burst: burst ?? 0 }))
    if (value > limitMax)
      report(
        key,
        `${key} ${value} is more than ${algorithm} can count in ${window}`,
        `write at most ${limitMax}, or a shorter window`,
      );
}

export function costOf(cost: NonNullable<PolicyRow['cost']>): Cost {
  if (typeof cost === 'number') return { kind: 'units', units: cost };
  // A body of unknown length (null) costs the whole capacity.
  if (cost === 'body-bytes') return { kind: 'body-bytes', unannounced: null };
  if ('header' in cost) return { kind: 'header', header: cost.header.toLowerCase() };
  if ('replyHeader' in cost)
    return { kind: 'reply-header', header: cost.replyHeader.toLowerCase(), reserve: cost.reserve };
  return { kind: 'body-bytes', unannounced: cost['body-bytes'] };
}

export function checkCost(
  cost: NonNullable<PolicyRow['cost']>,
  capacity: number,
  report: (message: string, fix: string) => void,
): void {
  const mistake = neverPasses(costOf(cost), capacity, `at most ${capacity} may be used at once`);
  if (mistake !== null) report(mistake, `write at most ${capacity}`);
}

/** Checks the overrides in the same way. @param report takes a path relative to the row */
export function checkOverrides(
  { algorithm, windowMs, limit, burst, overrides, cost }: Policy,
  written: Pick<PolicyRow, 'overrides'>,
  window: string,
  report: (path: Path, message: string, fix: string) => void,
): void {
  if (overrides === null || overrides.size === 0) return;
  const { least: limitMin, most: limitMax } = overrides;
  const pathOf = (limit: number): Path => {
    const at = written.overrides?.findIndex((entry) => entry.limit === limit) ?? -1;
    return at < 0 ? ['overridesFile'] : ['overrides', at, 'limit'];
  };
  const looser = [...overrides.programs.values()].find((other) => other >= limit);
  if (looser !== undefined) {
    const at = written.overrides?.findIndex(
      (entry) => entry.for.userAgent !== undefined && entry.limit === looser,
    );
    report(
      at === undefined ? ['overridesFile'] : ['overrides', at, 'limit'],
      `anybody can write any User-Agent, and this one would have ${looser} instead of ${limit}`,
      'write a limit below that of the policy',
    );
  }
  const countable = countableIn(windowMs);
  const countsUnits = algorithm === 'fixed-window' || algorithm === 'calendar-window';
  if (!countsUnits && limitMax > countable)
    report(
      pathOf(limitMax),
      `the limit ${limitMax} of an override is more than ${algorithm} can count in ${window}`,
      `write at most ${countable}, or a shorter window`,
    );
  // With a burst, an override does not change how many units can be used at once.
  const mistake = burst === null ? neverPasses(cost, limitMin, `an override allows ${limitMin}`) : null;
  if (mistake !== null) report(pathOf(limitMin), mistake, 'write a larger limit, or a smaller cost');
}

/** Overrides and rollouts select clients, so a policy for everyone cannot have them. */
export function checkEveryone(
  { rollout }: Pick<PolicyRow, 'rollout'>,
  written: Pick<PolicyRow, 'overrides' | 'overridesFile'>,
  report: (key: string, message: string, fix: string) => void,
): void {
  for (const key of ['overrides', 'overridesFile'] as const)
    if (written[key] !== undefined)
      report(key, `${key} are for single clients, and everyone is counted together`, 'remove them');
  if (rollout !== undefined)
    report('rollout', 'a rollout chooses clients, and everyone is counted together', 'remove it');
}

function countableIn(windowMs: Millis): number {
  return Math.floor(UNITS_MAX / Math.max(1, windowMs));
}

function neverPasses(cost: Cost, capacity: number, said: string): string | null {
  if (cost.kind === 'units' && cost.units > capacity)
    return `a request costs ${cost.units} and ${said}, so none could ever pass`;
  if (cost.kind === 'reply-header' && cost.reserve > capacity)
    return `a request reserves ${cost.reserve} and ${said}, so none could ever pass`;
  if (cost.kind === 'body-bytes' && (cost.unannounced ?? 0) > capacity)
    return `a body of unknown length costs ${cost.unannounced} and ${said}, so none could ever pass`;
  return null;
}
