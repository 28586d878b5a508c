/**
 * Text of a policy file -> PolicySet, or every mistake in it with line, column and a fix. Nothing of a file with a
 * mistake is used: half a table of limits is worse than the old one.
 */
import { hash } from 'node:crypto';
import { LineCounter, parseDocument } from 'yaml';
import type { Millis } from '#shared/clock.ts';
import { buildTests } from './load-tests.ts';
import type { Cost, Identifier, Policy, PolicySet } from './policy.ts';
import { type Path, PolicyFileError, type Problem, type Report, reportMistake } from './problems.ts';
import { coveredBy, parseRoute, type Route } from './route.ts';
import type { PolicyFile } from './schema.ts';
import { checkShape } from './shape.ts';
import { offsetOf, plainValue, type ReportAt, reportSyntax } from './yaml-text.ts';

type PolicyRow = PolicyFile['policies'][number];

const WINDOW_UNITS_SECONDS: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3600, d: 86_400 };
const WINDOW_SECONDS_MAX = 366 * 86_400;
/** Twice as many are still told apart one by one. */
const UNITS_MAX = 2 ** 52;
const FILE_BYTES_MAX = 1_048_576;
const VERSION_LENGTH = 12;
/** What reading another encoding as UTF-8 leaves behind. */
const NOT_UTF8 = /[\0\ufffd]/;

/**
 * @param text the file's content
 * @param file its name, for messages
 * @throws PolicyFileError with every mistake found
 */
export function loadPolicies(text: string, file: string): PolicySet {
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
  const set = build(value as PolicyFile, file, report, lineOf);
  if (problems.length > 0) throw new PolicyFileError(file, problems);
  return { ...set, version: hash('sha256', text).slice(0, VERSION_LENGTH) };
}
/** What the schema cannot say: references, routes, windows, rows that nothing can reach. */
function build(
  file: PolicyFile,
  name: string,
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
  const identifiers = new Map<string, Identifier>();
  for (const [key, { source, ipv6Prefix }] of Object.entries(file.identifiers)) {
    if (source !== 'client-address' && ipv6Prefix !== undefined) {
      report(
        ['identifiers', key, 'ipv6Prefix'],
        'ipv6Prefix goes with source: client-address only',
        'remove it',
        'key',
      );
    }
    identifiers.set(
      key,
      source === 'client-address'
        ? { name: key, kind: 'address', ipv6Prefix: ipv6Prefix ?? 64 }
        : {
            name: key,
            kind: 'credential',
            sources: source.map((entry) =>
              'header' in entry
                ? { kind: 'header', header: entry.header.toLowerCase() }
                : { kind: 'bearer', prefix: entry.bearer },
            ),
          },
    );
  }
  const exclude = (file.exclude ?? []).flatMap((text, i) => routeAt(['exclude', i], text) ?? []);

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

    const identifier = identifiers.get(row.identifier);
    if (identifier === undefined) {
      report(
        [...here, 'identifier'],
        `unknown identifier ${row.identifier}`,
        `identifiers has: ${[...identifiers.keys()].join(', ')}`,
      );
    }
    const route = routeAt([...here, 'route'], row.route);
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
    if (identifier === undefined || route === null) continue;

    const policy: Policy = {
      name: row.name,
      index,
      line,
      route,
      identifier,
      limit: row.limit,
      algorithm: row.algorithm ?? 'fixed-window',
      capacity: row.burst ?? row.limit,
      cost: costOf(row),
      count: row.count ?? 'request',
      windowMs: windowSeconds * 1000,
      windowSeconds,
      bucket: row.bucket ?? row.name,
      bucketId: byBucket.get(row.bucket ?? row.name)?.index ?? index,
      mode: row.mode ?? 'enforce',
      onStoreFailure: row.onStoreFailure ?? 'local',
      headers: row.headers !== 'off' && row.headers !== false,
    };
    // A name that stands twice is told already, and its bucket merely follows from it.
    if (twin === undefined || row.bucket !== undefined) {
      checkBucket(policy, byBucket, (message, fix) =>
        report([...here, row.bucket === undefined ? 'name' : 'bucket'], message, fix),
      );
    }
    policies.push(policy);
  }
  const tests = buildTests(file, byName, report, lineOf);
  return { file: name, policies, exclude, identifiers: [...identifiers.values()], tests };
}

/** What is counted in units of a request times a millisecond has to stay a whole number. */
function checkAlgorithm(
  { algorithm = 'fixed-window', limit, burst, window }: PolicyRow,
  windowMs: Millis,
  report: (key: string, message: string, fix: string, point?: 'key') => void,
): void {
  if (burst !== undefined && algorithm !== 'token-bucket') {
    report('burst', 'burst goes with algorithm: token-bucket only', 'remove it, or add that line', 'key');
    return;
  }
  if (algorithm === 'fixed-window') return;
  const most = Math.floor(UNITS_MAX / Math.max(1, windowMs));
  for (const [key, value] of Object.entries({ limit, burst: burst ?? 0 }))
    if (value > most)
      report(
        key,
        `${key} ${value} is more than ${algorithm} can count in ${window}`,
        `write at most ${most}, or a shorter window`,
      );
}

function costOf({ cost = 1, limit, burst }: PolicyRow): Cost {
  if (typeof cost === 'number') return { kind: 'units', units: cost };
  // A body of which nobody knows how long it is takes all that may be used at once.
  if (cost === 'body-bytes') return { kind: 'body-bytes', unannounced: burst ?? limit };
  if ('header' in cost) return { kind: 'header', header: cost.header.toLowerCase() };
  return { kind: 'body-bytes', unannounced: cost['body-bytes'] };
}

/** What costs more than may be used at once could never pass. */
function checkCost(row: PolicyRow, report: (message: string, fix: string) => void): void {
  const { limit, burst } = row;
  const most = burst ?? limit;
  const cost = costOf(row);
  if (cost.kind === 'units' && cost.units > most)
    report(
      `a request costs ${cost.units} and at most ${most} may be used at once, so none could ever pass`,
      `write at most ${most}`,
    );
  if (cost.kind === 'body-bytes' && cost.unannounced > most)
    report(
      `a body of unknown length costs ${cost.unannounced} and at most ${most} may be used at once, so none could ever pass`,
      `write at most ${most}`,
    );
}

/** In what rows that share a counter have to agree, and what the file calls it. */
const SHARED = [
  ['identifier', 'identifier'],
  ['limit', 'limit'],
  ['windowMs', 'window'],
  ['algorithm', 'algorithm'],
  ['capacity', 'burst'],
  ['count', 'count'],
  ['mode', 'mode'],
  ['onStoreFailure', 'onStoreFailure'],
  ['headers', 'headers'],
] as const satisfies readonly (readonly [keyof Policy, string])[];

/** Rows that share a counter must mean the same by it. */
function checkBucket(
  policy: Policy,
  byBucket: Map<string, Policy>,
  report: (message: string, fix: string) => void,
): void {
  const other = byBucket.get(policy.bucket);
  if (other === undefined) {
    byBucket.set(policy.bucket, policy);
    return;
  }
  const differs = SHARED.filter(([key]) => policy[key] !== other[key]);
  // Without a burst of its own a row has another one because it has another limit.
  const told = differs.filter(([key]) => key !== 'capacity' || policy.limit === other.limit);
  if (differs.length > 0) {
    const what = told.map(([, name]) => name).join(' and ');
    report(
      `bucket ${policy.bucket} is shared with ${other.name} in line ${other.line}, which has another ${what}`,
      'make them equal or use another bucket',
    );
  }
}
