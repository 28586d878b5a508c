/**
 * Text of a policy file -> PolicySet, or every mistake in it with line, column and a fix. Nothing of a file with a
 * mistake is used: half a table of limits is worse than the old one.
 */
import { hash } from 'node:crypto';
import { LineCounter, parseDocument } from 'yaml';
import { Beside, readerBeside } from './beside.ts';
import { checkAlgorithm, checkCost, checkOverrides, costOf } from './load-algorithm.ts';
import { checkBucket } from './load-bucket.ts';
import { IdentifierTable } from './load-identifiers.ts';
import { buildLists } from './load-lists.ts';
import { OverrideLoader } from './load-overrides.ts';
import { buildTests } from './load-tests.ts';
import type { Policy, PolicySet } from './policy.ts';
import { type Path, PolicyFileError, type Problem, type Report, reportMistake } from './problems.ts';
import { type Rollout, rolloutOf } from './rollout.ts';
import { coveredBy, parseRoute, type Route } from './route.ts';
import type { PolicyFile } from './schema.ts';
import { checkShape } from './shape.ts';
import { offsetOf, plainValue, type ReportAt, reportSyntax } from './yaml-text.ts';

const WINDOW_UNITS_SECONDS: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3600, d: 86_400 };
const WINDOW_SECONDS_MAX = 366 * 86_400;
const FILE_BYTES_MAX = 1_048_576;
const VERSION_LENGTH = 12;
/** What reading another encoding as UTF-8 leaves behind. */
const NOT_UTF8 = /[\0\ufffd]/;

/**
 * @param text the file's content
 * @param file its name, for messages, and for the folder of the files that it names
 * @throws PolicyFileError with every mistake found
 */
export function loadPolicies(text: string, file: string, beside = readerBeside(file)): PolicySet {
  if (Buffer.byteLength(text) > FILE_BYTES_MAX) {
    throw new PolicyFileError(file, [
      { line: 1, column: 1, message: 'a policy file has at most 1 MiB', fix: 'remove what is not needed' },
    ]);
  }
  const lines = new LineCounter();
  // Errors only: a warning would go to stderr past our own report.
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
  const foreign = text.search(NOT_UTF8);
  if (foreign >= 0) at(foreign, 'not UTF-8 text', 'save the file in the encoding UTF-8');
  else reportSyntax(document.errors, text, at);
  if (problems.length > 0) throw new PolicyFileError(file, problems);

  const { contents } = document;
  const report: Report = (path, message, fix, point = 'value') =>
    at(offsetOf(contents, path, point), message, fix);
  const value = plainValue(document, at);
  if (problems.length === 0) checkShape(value, report);
  if (problems.length > 0) throw new PolicyFileError(file, problems);

  const lineOf = (path: Path): number => lines.linePos(offsetOf(contents, path, 'value')).line;
  const files = new Beside(beside);
  const set = build(value as PolicyFile, file, files, report, lineOf);
  if (problems.length > 0) throw new PolicyFileError(file, problems);
  const all = [text, ...files.texts.values()].join('');
  return { ...set, version: hash('sha256', all).slice(0, VERSION_LENGTH) };
}

/** What the schema cannot say: references, routes, windows, rows that nothing can reach. */
function build(
  file: PolicyFile,
  name: string,
  beside: Beside,
  report: Report,
  lineOf: (path: Path) => number,
): Omit<PolicySet, 'version'> {
  const routeAt = (path: Path, text: string): Route | null => {
    try {
      return parseRoute(text);
    } catch (error) {
      reportMistake(report, path, error);
      return null;
    }
  };
  const identifiers = new IdentifierTable(file.identifiers, beside, report);
  const exclude = (file.exclude ?? []).flatMap((text, i) => routeAt(['exclude', i], text) ?? []);

  const planHeader = file.plan?.header.toLowerCase() ?? null;
  const overrides = new OverrideLoader(beside, planHeader !== null, report);
  const policies: Policy[] = [];
  const byName = new Map<string, number>();
  const byBucket = new Map<string, Policy>();
  for (const [index, row] of file.policies.entries()) {
    const here: Path = ['policies', index];
    const line = lineOf(here);
    const twin = byName.get(row.name);
    if (twin !== undefined)
      report([...here, 'name'], `the name ${row.name} stands already in line ${twin}`, 'choose another');
    byName.set(row.name, line);

    const route = routeAt([...here, 'route'], row.route);
    const identifier = identifiers.of(row.identifier, route, [...here, 'identifier']);
    const blockers = route === null ? [] : coveredBy(route, exclude);
    if (blockers.length > 0) {
      const texts = blockers.map(({ text }) => `"${text}"`).join(' and ');
      report(
        [...here, 'route'],
        `unreachable: exclude takes out ${texts}, so nothing is left of this route`,
        'remove one of them',
      );
    }
    const windowSeconds = Number(row.window.slice(0, -1)) * (WINDOW_UNITS_SECONDS[row.window.slice(-1)] ?? 0);
    if (windowSeconds > WINDOW_SECONDS_MAX)
      report([...here, 'window'], `window ${row.window} is too long`, 'write at most 366d');
    checkAlgorithm(row, windowSeconds * 1000, (key, message, fix, point) =>
      report([...here, key], message, fix, point),
    );
    checkCost(row, (message, fix) => report([...here, 'cost'], message, fix));
    if (identifier === null || route === null) continue;

    const policy: Policy = {
      name: row.name,
      index,
      line,
      route,
      identifier,
      limit: row.limit,
      overrides: overrides.of(row, here),
      algorithm: row.algorithm ?? 'fixed-window',
      burst: row.burst ?? null,
      capacity: row.burst ?? row.limit,
      cost: costOf(row),
      count: row.count ?? 'request',
      windowMs: windowSeconds * 1000,
      windowSeconds,
      bucket: row.bucket ?? row.name,
      bucketId: byBucket.get(row.bucket ?? row.name)?.index ?? index,
      rollout: rolloutIn(row.rollout, row.bucket ?? row.name),
      mode: row.mode ?? 'enforce',
      onStoreFailure: row.onStoreFailure ?? 'local',
      headers: row.headers !== 'off' && row.headers !== false,
    };
    checkOverrides(policy, row, (path, message, fix) => report([...here, ...path], message, fix));
    // A name that stands twice is told already, and its bucket merely follows from it.
    if (twin === undefined || row.bucket !== undefined) {
      checkBucket(policy, byBucket, (message, fix) =>
        report([...here, row.bucket === undefined ? 'name' : 'bucket'], message, fix),
      );
    }
    policies.push(policy);
  }
  const lists = buildLists(file, report, lineOf);
  const tests = buildTests(file, byName, report, lineOf);
  return { file: name, policies, exclude, planHeader, identifiers: identifiers.declared, lists, tests };
}

/** null: everybody. */
function rolloutIn(written: number | string | undefined, bucket: string): Rollout | null {
  const percent = written === undefined ? 100 : Number.parseFloat(String(written));
  return percent === 100 ? null : rolloutOf(percent, bucket);
}
