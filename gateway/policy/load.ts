/**
 * Text of a policy file -> PolicySet, or every mistake in it with line, column and a mend. Nothing of a file with a
 * mistake is used: half a table of limits is worse than the old one.
 */

import { Settings } from 'typebox/system';
import { Value } from 'typebox/value';
import { isMap, isScalar, isSeq, LineCounter, type Node, parseDocument } from 'yaml';
import type { Identifier, Policy, PolicySet } from './policy.ts';
import { coveredBy, parseRoute, type Route } from './route.ts';
import { type PolicyFile, policyFileSchema } from './schema.ts';

export interface Problem {
  /** From 1. */
  readonly line: number;
  readonly column: number;
  /** What is wrong and how to mend it. */
  readonly message: string;
}

export class PolicyFileError extends Error {
  readonly file: string;
  readonly problems: readonly Problem[];

  constructor(file: string, problems: readonly Problem[]) {
    super(problems.map(({ line, column, message }) => `${file}:${line}:${column}: ${message}`).join('\n'));
    this.name = 'PolicyFileError';
    this.file = file;
    this.problems = problems;
  }
}

type Path = readonly (string | number)[];

const WINDOW_UNITS_SECONDS: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3600, d: 86_400 };
const WINDOW_SECONDS_MAX = 366 * 86_400;
/** The schema engine stops at 8 errors unless told otherwise; an operator wants the whole list. */
const SHAPE_ERRORS_MAX = 100;
const FILE_BYTES_MAX = 1_048_576;

/**
 * @param text the file's content
 * @param file its name, for messages
 * @throws PolicyFileError with every mistake found
 */
export function loadPolicies(text: string, file: string): PolicySet {
  if (Buffer.byteLength(text) > FILE_BYTES_MAX) {
    throw new PolicyFileError(file, [{ line: 1, column: 1, message: 'a policy file has at most 1 MiB' }]);
  }
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines, uniqueKeys: true, strict: true });
  const problems: Problem[] = [];
  const at = (offset: number, message: string): void => {
    const { line, col } = lines.linePos(offset);
    problems.push({ line: Math.max(1, line), column: Math.max(1, col), message });
  };
  for (const error of document.errors) {
    const duplicate = error.code === 'DUPLICATE_KEY';
    at(
      error.pos[0],
      duplicate ? `${keyAt(text, error.pos[0])} stands twice; keep one` : yamlMessage(error.message),
    );
  }
  if (problems.length > 0) throw new PolicyFileError(file, problems);

  /** Reports a mistake where `path` stands; of a missing or unknown key, where its owner or itself stands. */
  const report = (path: Path, message: string): void => at(offsetOf(document.contents, path), message);
  const value: unknown = document.toJS({ maxAliasCount: 100 });
  checkShape(value, report);
  if (problems.length > 0) throw new PolicyFileError(file, problems);

  const set = build(
    value as PolicyFile,
    file,
    report,
    (path) => lines.linePos(offsetOf(document.contents, path)).line,
  );
  if (problems.length > 0)
    throw new PolicyFileError(
      file,
      problems.sort((a, b) => a.line - b.line),
    );
  return set;
}

function yamlMessage(message: string): string {
  return `not valid YAML: ${message.replace(/ at line \d+, column \d+:[\s\S]*$/, '')}`;
}

function keyAt(text: string, offset: number): string {
  return /^[^\s:]*/.exec(text.slice(offset))?.[0] ?? 'the key';
}

/** Where in the text the value (or, for an unknown key, the key) of a path begins. */
function offsetOf(contents: unknown, path: Path): number {
  let node = contents;
  let offset = startOf(node);
  for (const step of path) {
    if (isMap(node)) {
      const pair = node.items.find(({ key }) => isScalar(key) && String(key.value) === String(step));
      if (pair === undefined) return offset;
      offset = startOf(pair.value) || startOf(pair.key);
      if (isScalar(pair.value) && pair.value.value === null) offset = startOf(pair.key);
      node = pair.value;
    } else if (isSeq(node)) {
      node = node.items[Number(step)];
      offset = startOf(node);
    } else return offset;
  }
  return offset;
}

function startOf(node: unknown): number {
  return (node as Node | null | undefined)?.range?.[0] ?? 0;
}

interface SchemaNode {
  readonly description?: string;
  readonly properties?: Readonly<Record<string, SchemaNode>>;
  readonly patternProperties?: Readonly<Record<string, SchemaNode>>;
  readonly items?: SchemaNode;
}

/** The deepest part of the schema on the way to `path`, with how much of the path it took. */
function schemaAt(path: Path): { readonly schema: SchemaNode; readonly depth: number } {
  let schema: SchemaNode = policyFileSchema as SchemaNode;
  let depth = 0;
  for (const step of path) {
    const next =
      typeof step === 'number'
        ? schema.items
        : (schema.properties?.[step] ?? Object.values(schema.patternProperties ?? {})[0]);
    if (next === undefined) break;
    schema = next;
    depth++;
  }
  return { schema, depth };
}

function checkShape(value: unknown, report: (path: Path, message: string) => void): void {
  Settings.Set({ maxErrors: SHAPE_ERRORS_MAX });
  const told = new Set<string>();
  const tell = (path: Path, message: string): void => {
    const key = path.join('/');
    if (told.has(key)) return;
    told.add(key);
    report(path, message);
  };
  for (const error of Value.Errors(policyFileSchema, value)) {
    const path = error.instancePath
      .split('/')
      .slice(1)
      .map((step) => (/^\d+$/.test(step) ? Number(step) : step.replaceAll('~1', '/').replaceAll('~0', '~')));
    const { schema, depth } = schemaAt(path);
    const params = error.params as { additionalProperties?: string[]; requiredProperties?: string[] };
    if (error.keyword === 'boolean' || depth < path.length) {
      // Below a union, or a key that nobody knows: told by the error at its owner.
    } else if (params.additionalProperties !== undefined && schema.properties !== undefined) {
      for (const key of params.additionalProperties)
        tell([...path, key], unknownKey(key, Object.keys(schema.properties)));
    } else if (params.additionalProperties !== undefined) {
      for (const key of params.additionalProperties)
        tell([...path, key], `"${key}" cannot be a name here: ${schema.description}`);
    } else if (params.requiredProperties !== undefined) {
      for (const key of params.requiredProperties) {
        const mend = schema.properties?.[key]?.description ?? '';
        tell([...path, `${key} (missing)`], `${key} is missing: ${mend}`);
      }
    } else {
      const subject = path.at(-1) ?? 'the file';
      const named = typeof subject === 'number' ? `entry ${subject + 1}` : subject;
      tell(path, `${named} is ${shown(value, path)}; expected: ${schema.description ?? error.message}`);
    }
  }
}

function shown(root: unknown, path: Path): string {
  let value = root;
  for (const step of path) value = (value as Record<string | number, unknown> | undefined)?.[step];
  const text = JSON.stringify(value) ?? 'nothing';
  return text.length > 60 ? `${text.slice(0, 57)}...` : text;
}

function unknownKey(key: string, known: readonly string[]): string {
  const close = known.find((candidate) => distance(key.toLowerCase(), candidate.toLowerCase()) <= 2);
  return `unknown key ${key}; ${close === undefined ? `known here: ${known.join(', ')}` : `did you mean ${close}?`}`;
}

/** Levenshtein distance. */
function distance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const substitution = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(substitution, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1));
    }
    row = next;
  }
  return row[b.length] ?? 0;
}

/** What the schema cannot say: references, routes, windows, rows that nothing can reach. */
function build(
  file: PolicyFile,
  name: string,
  report: (path: Path, message: string) => void,
  lineOf: (path: Path) => number,
): PolicySet {
  const routeAt = (path: Path, text: string): Route | null => {
    try {
      return parseRoute(text);
    } catch (error) {
      report(path, (error as Error).message);
      return null;
    }
  };
  const identifiers = new Map<string, Identifier>();
  for (const [key, { source, ipv6Prefix }] of Object.entries(file.identifiers)) {
    if (source !== 'client-address' && ipv6Prefix !== undefined) {
      report(
        ['identifiers', key, 'ipv6Prefix'],
        'ipv6Prefix goes with source: client-address only; remove it',
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
      report([...here, 'name'], `the name ${row.name} stands already in line ${twin}; choose another`);
    byName.set(row.name, line);

    const identifier = identifiers.get(row.identifier);
    if (identifier === undefined) {
      report(
        [...here, 'identifier'],
        `unknown identifier ${row.identifier}; identifiers has: ${[...identifiers.keys()].join(', ')}`,
      );
    }
    const route = routeAt([...here, 'route'], row.route);
    const blockers = route === null ? [] : coveredBy(route, exclude);
    if (blockers.length > 0) {
      const texts = blockers.map(({ text }) => `"${text}"`).join(' and ');
      report(
        [...here, 'route'],
        `unreachable: exclude takes out ${texts}, so nothing is left of this route; remove one of them`,
      );
    }
    const windowSeconds = Number(row.window.slice(0, -1)) * (WINDOW_UNITS_SECONDS[row.window.slice(-1)] ?? 0);
    if (windowSeconds > WINDOW_SECONDS_MAX)
      report([...here, 'window'], `window ${row.window} is longer than 366d`);
    if (identifier === undefined || route === null) continue;

    const policy: Policy = {
      name: row.name,
      index,
      line,
      route,
      identifier,
      limit: row.limit,
      windowMs: windowSeconds * 1000,
      windowSeconds,
      bucket: row.bucket ?? row.name,
      bucketId: byBucket.get(row.bucket ?? row.name)?.index ?? index,
      mode: row.mode ?? 'enforce',
      onStoreFailure: row.onStoreFailure ?? 'local',
      headers: row.headers !== 'off' && row.headers !== false,
    };
    checkBucket(policy, byBucket, (message) =>
      report([...here, row.bucket === undefined ? 'name' : 'bucket'], message),
    );
    policies.push(policy);
  }
  return { file: name, policies, exclude, identifiers: [...identifiers.values()] };
}

/** Rows that share a counter must mean the same by it. */
function checkBucket(policy: Policy, byBucket: Map<string, Policy>, report: (message: string) => void): void {
  const other = byBucket.get(policy.bucket);
  if (other === undefined) {
    byBucket.set(policy.bucket, policy);
    return;
  }
  const differs = (['identifier', 'limit', 'windowMs', 'mode'] as const).filter(
    (key) => policy[key] !== other[key],
  );
  if (differs.length > 0) {
    const what = differs.map((key) => (key === 'windowMs' ? 'window' : key)).join(' and ');
    report(
      `bucket ${policy.bucket} is shared with ${other.name} in line ${other.line}, which has another ${what}; make them equal or use another bucket`,
    );
  }
}
