/** Reads the policies of a file: each key by its row in the table, and what concerns several keys or several policies. */

import type { Calendar } from '#gateway/algorithms/calendar.ts';
import { ALGORITHMS } from '#gateway/algorithms/table.ts';
import type { Group, GroupKey } from '#gateway/policy/groups.ts';
import type { PolicyFile } from '#gateway/policy/keys/file-keys.ts';
import type { IdentifierTable } from '#gateway/policy/keys/identifiers.ts';
import { type Readings, readKeys } from '#gateway/policy/keys/key.ts';
import { limitsOf, type RowLimit } from '#gateway/policy/keys/limits.ts';
import { checkOverrides, type OverrideLoader } from '#gateway/policy/keys/overrides.ts';
import { POLICY_KEYS, POLICY_ROWS } from '#gateway/policy/keys/policy-keys.ts';
import type { LoadedPolicy } from '#gateway/policy/policy-set.ts';
import { attempt, type Path, type Report } from '#gateway/policy/problems.ts';
import { coveredBy, parseRoute, type Route } from '#gateway/policy/route.ts';

type Row = PolicyFile['policies'][number];

/** The other parts of the file that policies refer to. */
interface Surroundings {
  readonly identifiers: IdentifierTable;
  readonly overrides: OverrideLoader;
  readonly groups: Readonly<Record<GroupKey, Group>>;
  readonly calendarFor: (window: string) => Calendar | null;
  /** Routes that `exclude` removes for all hosts. */
  readonly exclude: readonly Route[];
  /** Routes that `deny` refuses to everybody, for all hosts. */
  readonly closed: readonly Route[];
  readonly ignoreCase: boolean;
  readonly report: Report;
  readonly lineOf: (path: Path) => number;
}

export class PolicyTable {
  readonly policies: LoadedPolicy[] = [];
  /** Policies that a test can check by the name of a row: one, or one for each entry of `limits`. */
  readonly rowNames = new Map<string, readonly string[]>();
  readonly #around: Surroundings;
  readonly #lines = new Map<string, number>();
  readonly #byBucket = new Map<string, LoadedPolicy>();

  constructor(around: Surroundings) {
    this.#around = around;
  }

  add(row: Row, here: Path): void {
    const { identifiers, ignoreCase, report } = this.#around;
    const limits = limitsOf(row, here, report);
    const isNew = this.#addNames(row, limits, here);
    const route = attempt(report, [...here, 'route'], () => parseRoute(row.route, ignoreCase));
    const where = { route, hosts: row.hosts };
    const rowIdentifier = identifiers.of(row.identifier, where, [...here, 'identifier']);
    if (route !== null) this.#checkReachable(route, [...here, 'route']);
    for (const limit of limits) {
      const identifier =
        limit.share?.identifier ??
        (limit.identifier === row.identifier
          ? rowIdentifier
          : identifiers.of(limit.identifier, where, [...limit.at, 'identifier']));
      const place = {
        bucket: row.bucket ?? row.name,
        identifier,
        rowIdentifier,
        identifierNamed: (name: string, key: string) => identifiers.named(name, where, [...here, key]),
        route,
        ignoreCase,
        isInFlight: ALGORITHMS[limit.algorithm].isHeld,
        capacity: limit.burst ?? limit.limit,
        isForGroup: limit.group !== null,
      };
      const readings = readKeys(POLICY_KEYS, row, here, { ...place, report });
      if (identifier === null || route === null) continue;
      const policy = this.#policy(limit, { route, identifier, capacity: place.capacity, readings });
      // A duplicate name is already reported, and it also makes the bucket a duplicate.
      if (isNew || row.bucket !== undefined)
        this.#checkBucket(policy, [...here, row.bucket === undefined ? 'name' : 'bucket']);
      this.policies.push(policy);
    }
  }

  /** @returns false if another row has one of the names, which is reported */
  #addNames(row: Row, limits: readonly RowLimit[], here: Path): boolean {
    const { report, lineOf } = this.#around;
    const own = limits.map(({ name }) => name);
    const names = new Set([row.name, ...own]);
    const twin = [...names].find((name) => this.#lines.has(name));
    if (twin !== undefined)
      report(
        [...here, 'name'],
        `the name ${twin} is already used in line ${this.#lines.get(twin)}`,
        'choose another',
      );
    const line = lineOf(here);
    for (const name of names) this.#lines.set(name, line);
    // Tests name the whole limit of a group, and not its shares.
    for (const { name, share } of limits) if (share === null) this.rowNames.set(name, [name]);
    // Other clients are not counted by the limit of a group, so tests name it apart.
    this.rowNames.set(
      row.name,
      limits.flatMap(({ name, group }) => (group === null ? [name] : [])),
    );
    return twin === undefined;
  }

  /** Policies that share a bucket must count in the same way. */
  #checkBucket(policy: LoadedPolicy, here: Path): void {
    const { bucket } = policy;
    const other = this.#byBucket.get(bucket);
    if (other === undefined) this.#byBucket.set(bucket, policy);
    const differs = POLICY_ROWS.flatMap(([name, { counted, countedAs = name }]) =>
      other === undefined || counted?.(policy) === counted?.(other) ? [] : [countedAs],
    );
    if (other === undefined || differs.length === 0) return;
    this.#around.report(
      here,
      `bucket ${bucket} is shared with ${other.name} in line ${other.line}, which has a different ${differs.join(' and ')}`,
      'make them equal or use another bucket',
    );
  }

  #checkReachable(route: Route, here: Path): void {
    const { exclude, closed, report } = this.#around;
    for (const [verb, routes] of [
      ['exclude removes', exclude],
      ['deny refuses', closed],
    ] as const) {
      const blockers = coveredBy(route, routes);
      if (blockers.length === 0) continue;
      const texts = blockers.map(({ text }) => `"${text}"`).join(' and ');
      report(here, `unreachable: ${verb} ${texts}, so nothing is left of this route`, 'remove one of them');
    }
  }

  #policy(
    { at, overrides: written, window, identifier: _, group, share, ...limit }: RowLimit,
    {
      readings,
      ...read
    }: Pick<LoadedPolicy, 'route' | 'identifier' | 'capacity'> & { readings: Readings<typeof POLICY_KEYS> },
  ): LoadedPolicy {
    const { overrides, groups, calendarFor, report, lineOf } = this.#around;
    const index = this.policies.length;
    const policy: LoadedPolicy = {
      ...limit,
      ...read,
      ...readings,
      index,
      at,
      line: lineOf(at),
      overrides: overrides.of(written, read.identifier, at),
      onlyFor: group === null ? null : groups[group],
      shareOf: share?.of ?? null,
      windowMs: limit.windowSeconds * 1000,
      calendar: calendarFor(window),
      bucketId: this.#byBucket.get(limit.bucket)?.index ?? index,
    };
    checkOverrides(policy, written, window, (path, ...mistake) => report([...at, ...path], ...mistake));
    return policy;
  }
}
