/**
 * Parses a policy file into a PolicySet, or reports every mistake in it with line, column and a fix. A file with a
 * mistake is refused as a whole, because half a table of limits is worse than the old one.
 */
import { LineCounter, parseDocument } from 'yaml';
import { FILE_KEYS, type PolicyFile } from '#gateway/policy/keys/file-keys.ts';
import { IdentifierTable } from '#gateway/policy/keys/identifiers.ts';
import { readKeys } from '#gateway/policy/keys/key.ts';
import { readLists } from '#gateway/policy/keys/lists.ts';
import { NetworkLoader } from '#gateway/policy/keys/networks.ts';
import { OverrideLoader } from '#gateway/policy/keys/overrides.ts';
import { regularsOf } from '#gateway/policy/keys/regulars.ts';
import { buildTests } from '#gateway/policy/keys/tests.ts';
import type { PolicySet } from '#gateway/policy/policy-set.ts';
import {
  foreignCharacter,
  type Path,
  PolicyFileError,
  type Problem,
  type Report,
  sentenceOf,
} from '#gateway/policy/problems.ts';
import { ReferencedFiles, referencedReader, versionOf } from '#gateway/policy/referenced-files.ts';
import { PolicyTable } from './policies.ts';
import { checkShape, soundParts } from './shape.ts';
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
  const told = new Set<string>();
  const at: ReportAt = (offset, message, fix) => {
    const { line, col } = lines.linePos(offset);
    const problem = { line: Math.max(1, line), column: Math.max(1, col), message, fix };
    // All limits of a row have the mistakes of the row.
    const key = sentenceOf(file, problem);
    if (told.has(key)) return;
    told.add(key);
    problems.push(problem);
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
  return { ...set, version: versionOf(text, ...referenced.texts.values()) };
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
  const {
    plan: { header: planHeader, claim: planClaim },
    replies: { page, origins },
    timezone: calendarFor,
    ...readings
  } = readKeys(FILE_KEYS, file, [], { ignoreCase, referenced, report });
  const hasTokens = Object.values(file.identifiers).some(
    ({ source }) => typeof source !== 'string' && source.some((one) => 'jwt' in one),
  );
  if (planClaim !== null && !hasTokens)
    report(
      ['plan', 'claim'],
      'no identifier of this file reads signed tokens',
      'add an identifier with the source [{ jwt: { bearer: true, claim: sub, jwks: FILE } }]',
    );
  const place = { referenced, report, lineOf };
  const networks = new NetworkLoader(place);
  const identifiers = new IdentifierTable(file.identifiers, referenced, networks, report);
  const groups = { newcomers: regularsOf(file.regulars, identifiers, networks, report) };
  const lists = readLists(file, { ...place, ignoreCase, networks });
  const table = new PolicyTable({
    identifiers,
    overrides: new OverrideLoader(place, file.plan !== undefined || file.plans !== undefined),
    groups,
    calendarFor,
    exclude: readings.exclude.filter(({ hosts }) => hosts === null),
    closed: lists?.routes.map(([route]) => route).filter(({ hosts }) => hosts === null) ?? [],
    ignoreCase,
    report,
    lineOf,
  });
  // Object.entries skips the holes that soundParts leaves.
  for (const [place, row] of Object.entries(file.policies)) table.add(row, ['policies', Number(place)]);
  return {
    ...readings,
    file: name,
    policies: table.policies,
    planHeader,
    planClaim,
    hasProgramLimits: table.policies.some(
      ({ overrides }) => overrides !== null && overrides.clients.programs.size > 0,
    ),
    identifiers: identifiers.declared,
    lists,
    listFiles: referenced,
    page,
    origins,
    tests: buildTests(file.tests ?? [], table.rowNames, report, lineOf),
  };
}
