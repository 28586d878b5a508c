/** Does the value have the shape of a policy file? The schema knows; this turns its verdicts into fixes. */
import { Errors } from 'typebox/schema';
import { Settings } from 'typebox/system';
import type { Path, Report } from './problems.ts';
import { policyFileSchema } from './schema.ts';

/** The schema engine stops at 8 errors unless told otherwise; an operator wants the whole list. */
const SHAPE_ERRORS_MAX = 100;
/** Characters of a wrong value that a message repeats. */
const SHOWN_MAX = 60;

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

/** What the schema cannot say: a row has limit and window unless it says otherwise how much it allows. */
function checkQuotas(value: unknown, tell: Report): void {
  for (const [i, row] of entriesOf(value, 'policies')) {
    tellMissing(row, ['policies', i], ['concurrency', 'limits'], tell);
    for (const [j, entry] of entriesOf(row, 'limits'))
      tellMissing(entry, ['policies', i, 'limits', j], ['concurrency'], tell);
  }
}

function tellMissing(owner: unknown, path: Path, instead: readonly string[], tell: Report): void {
  if (typeof owner !== 'object' || owner === null || Array.isArray(owner)) return;
  if (instead.some((key) => key in owner)) return;
  const { schema } = schemaAt(path);
  for (const key of ['limit', 'window'])
    if (!(key in owner))
      tell(
        [...path, `${key} (missing)`],
        `${key} is missing`,
        `expected: ${schema.properties?.[key]?.description}`,
      );
}

function entriesOf(owner: unknown, key: string): Iterable<[number, unknown]> {
  const list = (owner as Readonly<Record<string, unknown>> | null | undefined)?.[key];
  return Array.isArray(list) ? list.entries() : [];
}

export function checkShape(value: unknown, report: Report): void {
  Settings.Set({ maxErrors: SHAPE_ERRORS_MAX });
  const told = new Set<string>();
  const tell: Report = (path, message, fix, point) => {
    const key = path.join('/');
    if (told.has(key)) return;
    told.add(key);
    report(path, message, fix, point);
  };
  for (const error of Errors(policyFileSchema, value)[1]) {
    const path = pathOf(error.instancePath, value);
    const { schema, depth } = schemaAt(path);
    const params = error.params as { additionalProperties?: string[]; requiredProperties?: string[] };
    if (error.keyword === 'boolean' || depth < path.length) {
      // Below a union, or a key that nobody knows: told by the error at its owner.
    } else if (params.additionalProperties !== undefined) {
      for (const key of params.additionalProperties) {
        const [message, fix] =
          schema.properties === undefined
            ? [`${key} cannot be a name here`, `expected: ${schema.description}`]
            : [`unknown key ${key}`, knownKeys(key, Object.keys(schema.properties))];
        tell([...path, key], message, fix, 'key');
      }
    } else if (params.requiredProperties !== undefined) {
      for (const key of params.requiredProperties) {
        const fix = schema.properties?.[key]?.description ?? 'a value';
        tell([...path, `${key} (missing)`], `${key} is missing`, `expected: ${fix}`);
      }
    } else {
      const subject = path.at(-1) ?? 'the file';
      const named = typeof subject === 'number' ? `entry ${subject + 1}` : subject;
      tell(path, `${named} is ${shown(value, path)}`, `expected: ${schema.description ?? error.message}`);
    }
  }
  checkQuotas(value, tell);
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

/** Keys that other products have, and why there is none here. */
const FOREIGN_KEYS: Readonly<Record<string, string>> = Object.fromEntries(
  ['host', 'hosts', 'hostname', 'domain', 'domains'].map((key) => [
    key,
    'policies hold for every host: remove it, or give that host a gateway and a policy file of its own',
  ]),
);

function knownKeys(key: string, known: readonly string[]): string {
  const foreign = Object.hasOwn(FOREIGN_KEYS, key.toLowerCase())
    ? FOREIGN_KEYS[key.toLowerCase()]
    : undefined;
  if (foreign !== undefined) return foreign;
  const close = known.find((candidate) => distance(key.toLowerCase(), candidate.toLowerCase()) <= 2);
  return close === undefined ? `known here: ${known.join(', ')}` : `did you mean ${close}?`;
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
