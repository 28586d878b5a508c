/**
 * Text of a policy file -> PolicySet, or every mistake in it with line, column and a mend. Nothing of a file with a
 * mistake is used: half a table of limits is worse than the old one.
 */

import { Settings } from 'typebox/system';
import { Value } from 'typebox/value';
import {
  type Document,
  type ErrorCode,
  isAlias,
  isMap,
  isScalar,
  isSeq,
  LineCounter,
  type Node,
  parseDocument,
  visit,
  type YAMLParseError,
} from 'yaml';
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
  /** In the order of the file. */
  readonly problems: readonly Problem[];

  constructor(file: string, problems: readonly Problem[]) {
    const inOrder = [...problems].sort((a, b) => a.line - b.line || a.column - b.column);
    super(inOrder.map(({ line, column, message }) => `${file}:${line}:${column}: ${message}`).join('\n'));
    this.name = 'PolicyFileError';
    this.file = file;
    this.problems = inOrder;
  }
}

type Path = readonly (string | number)[];

/** Reports a mistake at the value that `path` leads to; `key`: at the key in front of it. */
type Report = (path: Path, message: string, point?: 'value' | 'key') => void;

const WINDOW_UNITS_SECONDS: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3600, d: 86_400 };
const WINDOW_SECONDS_MAX = 366 * 86_400;
/** The schema engine stops at 8 errors unless told otherwise; an operator wants the whole list. */
const SHAPE_ERRORS_MAX = 100;
const FILE_BYTES_MAX = 1_048_576;
/** How many nodes aliases may stand for, so that a short file cannot unfold into gigabytes. */
const ALIASES_MAX = 100;
/** Characters of a wrong value that a message repeats. */
const SHOWN_MAX = 60;

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
  reportSyntax(document.errors, text, at);
  if (problems.length > 0) throw new PolicyFileError(file, problems);

  const { contents } = document;
  const report: Report = (path, message, point = 'value') => at(offsetOf(contents, path, point), message);
  const value = plainValue(document, at);
  if (problems.length === 0) checkShape(value, report);
  if (problems.length > 0) throw new PolicyFileError(file, problems);

  const lineOf = (path: Path): number => lines.linePos(offsetOf(contents, path, 'value')).line;
  const set = build(value as PolicyFile, file, report, lineOf);
  if (problems.length > 0) throw new PolicyFileError(file, problems);
  return set;
}

/** Every duplicate key, but only the first of other mistakes: the parser's next ones mostly follow from it. */
function reportSyntax(
  errors: readonly YAMLParseError[],
  text: string,
  at: (offset: number, message: string) => void,
): void {
  const duplicates = errors.filter(({ code }) => code === 'DUPLICATE_KEY');
  for (const { pos } of duplicates) at(pos[0], `${keyAt(text, pos[0])} stands twice; keep one`);
  const [first] = errors.filter(({ code }) => code !== 'DUPLICATE_KEY');
  if (first !== undefined) at(first.pos[0], `not valid YAML: ${SYNTAX_MENDS[first.code] ?? bare(first)}`);
}

const SYNTAX_MENDS: Readonly<Partial<Record<ErrorCode, string>>> = {
  TAB_AS_INDENT: 'a tab cannot indent; use spaces',
  RESOURCE_EXHAUSTION: 'brackets are nested too deeply; close them',
  MULTIPLE_DOCS: 'a second document begins here; keep one, without ---',
};

/** The parser's message without the position and the excerpt that it appends. */
function bare({ message }: Error): string {
  return message.replace(/ at line \d+, column \d+:[\s\S]*$/, '');
}

function keyAt(text: string, offset: number): string {
  return /^[^\s:]*/.exec(text.slice(offset))?.[0] ?? 'the key';
}

/** The document as plain data; null, and a report, when its aliases do not unfold to a small tree. */
function plainValue(document: Document.Parsed, at: (offset: number, message: string) => void): unknown {
  const anchored = new Map<string, Node>();
  let firstAlias: Node | null = null;
  let isSound = true;
  visit(document, {
    Node(_key, node, ancestors) {
      if (!isAlias(node)) {
        if (node.anchor !== undefined) anchored.set(node.anchor, node);
        return undefined;
      }
      firstAlias ??= node;
      const target = anchored.get(node.source);
      if (target !== undefined && !ancestors.includes(target)) return undefined;
      isSound = false;
      at(
        startOf(node),
        target === undefined
          ? `*${node.source} has no anchor &${node.source} above it; write the value out`
          : `*${node.source} stands inside its own anchor; write the value out`,
      );
      return visit.BREAK;
    },
  });
  if (!isSound) return null;
  try {
    return document.toJS({ maxAliasCount: ALIASES_MAX });
  } catch (error) {
    // What is left to go wrong, and the parser says neither where nor with a type of its own.
    if (!(error instanceof ReferenceError)) throw error;
    at(startOf(firstAlias), 'the aliases of this file unfold to too many values; write the values out');
    return null;
  }
}

/** Where in the text the value or the key of a path begins; of a missing one, where its owner does. */
function offsetOf(contents: unknown, path: Path, point: 'value' | 'key'): number {
  let node = contents;
  let offset = startOf(node);
  for (const [depth, step] of path.entries()) {
    if (isMap(node)) {
      const pair = node.items.find(({ key }) => isScalar(key) && String(key.value) === String(step));
      if (pair === undefined) return offset;
      const wantsKey = point === 'key' && depth === path.length - 1;
      // A value that was left out has no place of its own.
      const isEmpty = isScalar(pair.value) && pair.value.value === null;
      offset = startOf(wantsKey || isEmpty ? pair.key : pair.value);
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

function checkShape(value: unknown, report: Report): void {
  Settings.Set({ maxErrors: SHAPE_ERRORS_MAX });
  const told = new Set<string>();
  const tell: Report = (path, message, point) => {
    const key = path.join('/');
    if (told.has(key)) return;
    told.add(key);
    report(path, message, point);
  };
  for (const error of Value.Errors(policyFileSchema, value)) {
    const path = pathOf(error.instancePath, value);
    const { schema, depth } = schemaAt(path);
    const params = error.params as { additionalProperties?: string[]; requiredProperties?: string[] };
    if (error.keyword === 'boolean' || depth < path.length) {
      // Below a union, or a key that nobody knows: told by the error at its owner.
    } else if (params.additionalProperties !== undefined) {
      for (const key of params.additionalProperties) {
        const message =
          schema.properties === undefined
            ? `${key} cannot be a name here; expected: ${schema.description}`
            : unknownKey(key, Object.keys(schema.properties));
        tell([...path, key], message, 'key');
      }
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

/** A JSON pointer as a path; a step is a number only where `root` has a list. */
function pathOf(pointer: string, root: unknown): Path {
  let value = root;
  return pointer
    .split('/')
    .slice(1)
    .map((escaped) => {
      const key = escaped.replaceAll('~1', '/').replaceAll('~0', '~');
      const step = Array.isArray(value) ? Number(key) : key;
      value = (value as Record<string | number, unknown> | null | undefined)?.[step];
      return step;
    });
}

function shown(root: unknown, path: Path): string {
  let value = root;
  for (const step of path) value = (value as Record<string | number, unknown> | null | undefined)?.[step];
  if (value === null || value === undefined) return 'empty';
  // JSON has no word for .inf and .nan.
  const text = typeof value === 'number' ? String(value) : JSON.stringify(value);
  return text.length > SHOWN_MAX ? `${text.slice(0, SHOWN_MAX - 3)}...` : text;
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
function build(file: PolicyFile, name: string, report: Report, lineOf: (path: Path) => number): PolicySet {
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
      report([...here, 'window'], `window ${row.window} is too long; write at most 366d`);
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
  const differs = (['identifier', 'limit', 'windowMs', 'mode', 'onStoreFailure', 'headers'] as const).filter(
    (key) => policy[key] !== other[key],
  );
  if (differs.length > 0) {
    const what = differs.map((key) => (key === 'windowMs' ? 'window' : key)).join(' and ');
    report(
      `bucket ${policy.bucket} is shared with ${other.name} in line ${other.line}, which has another ${what}; make them equal or use another bucket`,
    );
  }
}
