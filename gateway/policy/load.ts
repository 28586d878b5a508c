/**
 * Parses a policy file into a PolicySet, or reports every mistake in it with line, column and a fix. A file with a
 * mistake is refused as a whole, because half a table of limits is worse than the old one.
 */
import { LineCounter, parseDocument } from 'yaml';
import { EVERYONE } from '#gateway/identity/identifier.ts';
import { checkCost, checkEveryone, checkOverrides, costOf } from './load-algorithm.ts';
import { banOf, whyNotBanned } from './load-ban.ts';
import { checkBucket } from './load-bucket.ts';
import { calendarsOf } from './load-calendar.ts';
import { IdentifierTable } from './load-identifiers.ts';
import { limitsOf } from './load-limits.ts';
import { buildLists } from './load-lists.ts';
import { OverrideLoader } from './load-overrides.ts';
import { loadPlans } from './load-plans.ts';
import { buildTests } from './load-tests.ts';
import { loadPage } from './page-template.ts';
import type { Rollout } from './policy.ts';
import type { LoadedPolicy, PolicySet } from './policy-set.ts';
import {
  foreignCharacter,
  type Path,
  PolicyFileError,
  type Problem,
  type Report,
  reportMistake,
} from './problems.ts';
import { ReferencedFiles, referencedReader, versionOf } from './referenced-files.ts';
import { rolloutOf } from './rollout.ts';
import { coveredBy, parseRoute, type Route } from './route.ts';
import type { PolicyFile } from './schema.ts';
import { checkShape } from './shape.ts';
import { soundParts } from './sound-parts.ts';
import { offsetOf, plainValue, type ReportAt, reportSyntax } from './yaml-text.ts';

const FILE_BYTES_MAX = 1_048_576;

export function loadPolicies(text: string, file: string, readReferenced = referencedReader(file)): PolicySet {
  if (Buffer.byteLength(text) > FILE_BYTES_MAX) {
    throw new PolicyFileError(file, [
      { line: 1, column: 1, message: 'a policy file has at most 1 MiB', fix: 'remove what is not needed' },
    ]);
  }
  const lines = new LineCounter();
  // The parser would print warnings to stderr.
  const document = parseDocument(text, {
    lineCounter: lines,
    uniqueKeys: true,
    strict: true,
    logLevel: 'error',
  });
  const problems: Problem[] = [];
  const at: ReportAt = (offset, message, fix) => {
    const { line, col } = lines.linePos(offset);
    problems.push({ line: Math.max(1, line), column: Math.max(1, col), message, fix });
  };
  const foreign = foreignCharacter(text);
  if (foreign !== null) at(foreign.at, foreign.message, foreign.fix);
  else reportSyntax(document.errors, text, at);
  if (problems.length > 0) throw new PolicyFileError(file, problems);

  const { contents } = document;
  const report: Report = (path, message, fix, point = 'value') =>
    at(offsetOf(contents, path, point), message, fix);
  const value = plainValue(document, at);
  if (problems.length > 0) throw new PolicyFileError(file, problems);
  const broken: Path[] = [];
  checkShape(value, (path, ...mistake) => {
    broken.push(path);
    report(path, ...mistake);
  });
  const written = broken.length === 0 ? (value as PolicyFile) : soundParts(value, broken);
  if (written === null) throw new PolicyFileError(file, problems);

  const lineOf = (path: Path): number => lines.linePos(offsetOf(contents, path, 'value')).line;
  const referenced = new ReferencedFiles(readReferenced);
  const set = build(written, file, referenced, report, lineOf);
  if (problems.length > 0) throw new PolicyFileError(file, problems);
  const all = [text, ...referenced.texts.values()].join('');
  return { ...set, version: versionOf(all) };
}

/** Checks what the schema cannot: references, routes, windows and unreachable rows. */
function build(
  file: PolicyFile,
  name: string,
  referenced: ReferencedFiles,
  report: Report,
  lineOf: (path: Path) => number,
): Omit<PolicySet, 'version'> {
  const { ignoreCase = false } = file;
  const routeAt = (path: Path, text: string): Route | null => {
    try {
      return parseRoute(text, ignoreCase);
    } catch (error) {
      reportMistake(report, path, error);
      return null;
    }
  };
  const identifiers = new IdentifierTable(file.identifiers, referenced, report);
  const exclude = (file.exclude ?? []).flatMap((text, i) => routeAt(['exclude', i], text) ?? []);
  const lists = buildLists(file, referenced, report, lineOf);
  const closed = lists?.routes.map(([route]) => route) ?? [];

  const planHeader = file.plan?.header.toLowerCase() ?? null;
  const overrides = new OverrideLoader(referenced, planHeader !== null || file.plans !== undefined, report);
  const calendarFor = calendarsOf(file, report);
  const policies: LoadedPolicy[] = [];
  const byName = new Map<string, number>();
  const byBucket = new Map<string, LoadedPolicy>();
  /** Policies that a test can check by the name of a row: one, or one for each entry of `limits`. */
  const rowNames = new Map<string, readonly string[]>();
  // Object.entries skips the holes that soundParts leaves.
  for (const [place, row] of Object.entries(file.policies)) {
    const here: Path = ['policies', Number(place)];
    const limits = limitsOf(row, here, report);
    const names = new Set([row.name, ...limits.map(({ name }) => name)]);
    const twin = [...names].find((name) => byName.has(name));
    if (twin !== undefined)
      report(
        [...here, 'name'],
        `the name ${twin} is already used in line ${byName.get(twin)}`,
        'choose another',
      );
    const line = lineOf(here);
    for (const name of names) byName.set(name, line);
    for (const { name } of limits) rowNames.set(name, [name]);
    rowNames.set(
      row.name,
      limits.map(({ name }) => name),
    );

    const route = routeAt([...here, 'route'], row.route);
    const rowIdentifier = identifiers.of(row.identifier, route, [...here, 'identifier']);
    for (const [verb, routes] of [
      ['exclude removes', exclude],
      ['deny refuses', closed],
    ] as const) {
      const blockers = route === null ? [] : coveredBy(route, routes);
      if (blockers.length === 0) continue;
      const texts = blockers.map(({ text }) => `"${text}"`).join(' and ');
      report(
        [...here, 'route'],
        `unreachable: ${verb} ${texts}, so nothing is left of this route`,
        'remove one of them',
      );
    }
    const ban = banOf(row, (key, message, fix) => report([...here, 'ban', key], message, fix));
    const cannotBan = ban === null || rowIdentifier === null ? null : whyNotBanned(rowIdentifier);
    if (cannotBan !== null)
      report([...here, 'ban'], cannotBan, 'ban in a policy by address, with ipv6Prefix 64, or by key', 'key');
    for (const { at, name, bucket, limit, algorithm, burst, window, windowSeconds, ...written } of limits) {
      const identifier =
        written.identifier === row.identifier
          ? rowIdentifier
          : identifiers.of(written.identifier, route, [...at, 'identifier']);
      const isInFlight = algorithm === 'concurrency';
      const { cost = 1 } = isInFlight ? {} : row;
      const capacity = burst ?? limit;
      checkCost(cost, capacity, (message, fix) => report([...here, 'cost'], message, fix));
      if (identifier === null || route === null) continue;

      const index = policies.length;
      const policy: LoadedPolicy = {
        name,
        index,
        at,
        line: lineOf(at),
        route,
        identifier,
        limit,
        overrides: overrides.of(written.overrides, at),
        algorithm,
        burst,
        capacity,
        cost: costOf(cost),
        count: isInFlight ? 'request' : (row.count ?? 'request'),
        windowMs: windowSeconds * 1000,
        windowSeconds,
        calendar: calendarFor(window),
        bucket,
        bucketId: byBucket.get(bucket)?.index ?? index,
        // All policies of a row use the seed of the row, so their rollouts include the same clients.
        rollout: rolloutIn(row.rollout, row.bucket ?? row.name),
        mode: row.mode ?? 'enforce',
        onStoreFailure: row.onStoreFailure ?? 'local',
        headers: row.headers !== 'off' && row.headers !== false,
        ban: whyNotBanned(identifier) === null ? ban : null,
        priority: row.priority ?? null,
      };
      checkOverrides(policy, written.overrides, window, (path, message, fix) =>
        report(path[0] === 'cost' ? [...here, ...path] : [...at, ...path], message, fix),
      );
      if (identifier === EVERYONE)
        checkEveryone(row, written.overrides, (key, message, fix) =>
          report([...(key === 'rollout' ? here : at), key], message, fix, 'key'),
        );
      // A duplicate name is already reported, and it also makes the bucket a duplicate.
      if (twin === undefined || row.bucket !== undefined) {
        checkBucket(policy, byBucket, (message, fix) =>
          report([...here, row.bucket === undefined ? 'name' : 'bucket'], message, fix),
        );
      }
      policies.push(policy);
    }
  }
  const plans = loadPlans(file, referenced, report);
  const page = loadPage(file, referenced, report);
  const tests = buildTests(file, rowNames, report, lineOf);
  const { declared } = identifiers;
  return {
    file: name,
    policies,
    exclude,
    ignoreCase,
    protect:
      file.protect === 'shadow' ? 'shadow' : file.protect === 'on' || file.protect === true ? 'on' : null,
    planHeader,
    plans,
    hasProgramLimits: policies.some(({ overrides }) => overrides !== null && overrides.programs.size > 0),
    identifiers: declared,
    lists,
    page,
    tests,
  };
}

function rolloutIn(written: number | string | undefined, bucket: string): Rollout | null {
  const percent = written === undefined ? 100 : Number.parseFloat(String(written));
  return percent === 100 ? null : rolloutOf(percent, bucket);
}
