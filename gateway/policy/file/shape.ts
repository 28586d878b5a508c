/** Validates a parsed policy file and turns the validator's errors into messages with a fix. */
import { Errors } from 'typebox/schema';
import { Settings } from 'typebox/system';
import { type PolicyFile, policyFileSchema } from '#gateway/policy/keys/file-keys.ts';
import type { Path, Report } from '#gateway/policy/problems.ts';
import { editDistance } from '#shared/edit-distance.ts';

/**
 * Maximum number of reported errors. It is higher than the validator's default of 8, because operators want the whole
 * list.
 */
const SHAPE_ERRORS_MAX = 100;
/** Maximum length of a wrong value in a message, in characters. */
const SHOWN_MAX = 60;

interface SchemaNode {
  readonly description?: string;
  readonly properties?: Readonly<Record<string, SchemaNode>>;
  readonly patternProperties?: Readonly<Record<string, SchemaNode>>;
  readonly items?: SchemaNode;
  readonly anyOf?: readonly unknown[];
}

/** Returns the deepest schema on the way to `path`, and how many steps of the path lead to it. */
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

function checkQuotas(value: unknown, report: Report): void {
  for (const [i, row] of entriesOf(value, 'policies')) {
    reportMissing(row, ['policies', i], ['concurrency', 'limits'], report);
    for (const [j, entry] of entriesOf(row, 'limits'))
      reportMissing(entry, ['policies', i, 'limits', j], ['concurrency'], report);
  }
}

function reportMissing(owner: unknown, path: Path, instead: readonly string[], report: Report): void {
  if (!isRecord(owner) || instead.some((key) => key in owner)) return;
  const { schema } = schemaAt(path);
  for (const key of ['limit', 'window'])
    if (!(key in owner))
      report(
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
  const reported = new Set<string>();
  const reportOnce: Report = (path, message, fix, point) => {
    const key = path.join('/');
    if (reported.has(key)) return;
    reported.add(key);
    report(path, message, fix, point);
  };
  for (const error of Errors(policyFileSchema, value)[1]) {
    const path = pathOf(error.instancePath, value);
    const { schema, depth } = schemaAt(path);
    const params = error.params as { additionalProperties?: string[]; requiredProperties?: string[] };
    if (error.keyword === 'boolean' || depth < path.length || (schema.anyOf && error.keyword !== 'anyOf')) {
      // The error is inside a union or below an unknown key. The error at the owner is enough.
    } else if (params.additionalProperties !== undefined) {
      for (const key of params.additionalProperties) {
        const [message, fix] =
          schema.properties === undefined
            ? [`${key} cannot be a name here`, `expected: ${schema.description}`]
            : [`unknown key ${key}`, knownKeys(key, Object.keys(schema.properties))];
        reportOnce([...path, key], message, fix, 'key');
      }
    } else if (params.requiredProperties !== undefined) {
      for (const key of params.requiredProperties) {
        const fix = schema.properties?.[key]?.description ?? 'a value';
        reportOnce([...path, `${key} (missing)`], `${key} is missing`, `expected: ${fix}`);
      }
    } else {
      const subject = path.at(-1) ?? 'the file';
      const named = typeof subject === 'number' ? `entry ${subject + 1}` : subject;
      reportOnce(
        path,
        `${named} is ${shown(value, path)}`,
        `expected: ${schema.description ?? error.message}`,
      );
    }
  }
  checkQuotas(value, reportOnce);
}

/** Converts a JSON pointer. A step is a number only if `root` has a list there. */
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
  // JSON.stringify turns .inf and .nan into null.
  const text = typeof value === 'number' ? String(value) : JSON.stringify(value);
  return text.length > SHOWN_MAX ? `${text.slice(0, SHOWN_MAX - 3)}...` : text;
}

/** Keys that users of other products may try. */
const HOST_KEYS: ReadonlySet<string> = new Set(['host', 'hosts', 'hostname', 'domain', 'domains']);

function knownKeys(key: string, known: readonly string[]): string {
  if (HOST_KEYS.has(key.toLowerCase()))
    return 'only policies and entries of exclude, allow and deny have hosts: write hosts: [shop.example.org, "*.example.org"] there';
  const [close] = known
    .map((name) => ({ name, distance: editDistance(key.toLowerCase(), name.toLowerCase()) }))
    .filter(({ distance }) => distance <= 2)
    .sort((a, b) => a.distance - b.distance);
  return close === undefined ? `allowed here: ${known.join(', ')}` : `did you mean ${close.name}?`;
}

/** Replaces a malformed identifier. It causes no further mistakes in any combination. */
const ANY_IDENTIFIER: PolicyFile['identifiers'][string] = { source: [{ header: 'x-any' }] };

/** Overrides may name plans, although `plan` has a mistake, or the identifier of the tokens that name them. */
const ANY_PLAN: NonNullable<PolicyFile['plan']> = { header: 'x-any' };

/**
 * Leaves out the malformed parts of a policy file, so that mistakes in the other parts can be reported in the same run.
 * The result is used only to find mistakes. List entries keep their index: a removed entry leaves a hole.
 */
export function soundParts(value: unknown, broken: readonly Path[]): PolicyFile | null {
  const isSound = (...path: Path): boolean =>
    !broken.some((place) => path.every((step, i) => i >= place.length || step === place[i]));
  if (!isRecord(value) || !isRecord(value.identifiers) || !Array.isArray(value.policies)) return null;
  if (Object.keys(value.identifiers).length === 0) return null;
  const parts = Object.entries(value).flatMap(([key, part]) => {
    if (!Array.isArray(part)) return isSound(key) ? [[key, part]] : [];
    const kept: unknown[] = [];
    for (const [i, entry] of part.entries()) if (isSound(key, i)) kept[i] = entry;
    return [[key, kept]];
  });
  // The tests may name policies that are left out.
  const { plan: _, tests: __, ...others } = Object.fromEntries(parts) as PolicyFile;
  const identifiers = Object.fromEntries(
    Object.entries(value.identifiers as PolicyFile['identifiers']).map(([name, identifier]) => [
      name,
      isSound('identifiers', name) ? identifier : ANY_IDENTIFIER,
    ]),
  );
  const named = value.plan === undefined ? {} : { plan: ANY_PLAN };
  return { ...others, identifiers, ...named };
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
