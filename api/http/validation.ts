/** Turns TypeBox's findings into an error of ours: one text for each field, under its dotted path. */

import { createRequire } from 'node:module';
import type { FastifySchemaCompiler } from 'fastify';
import type { Static, TSchema } from 'typebox';
import type { Validator } from 'typebox/compile';
import { type Details, invalidFields } from '#api/errors.ts';
import { ID_PATTERN } from '#api/values/ids.ts';
import { isRecord } from '#api/values/schemas.ts';
import { readTimestamp } from '#api/values/timestamps.ts';

/** One entry of TypeBox's report. Both parts depend on the keyword. */
interface Finding {
  readonly keyword: string;
  readonly schemaPath: string;
  readonly instancePath: string;
  readonly params: object;
  readonly message: string;
}

interface Checker<T> {
  /** Whether the value fits the schema. Builds no messages. */
  is(value: unknown): value is T;
  /** @returns texts by dotted path, empty without mistakes; paths start with `prefix` */
  issues(value: unknown, prefix?: string): Record<string, string>;
}

const require = createRequire(import.meta.url);
/** Loads the compiler with the first value to check. Callers cannot wait for a promise, so import() is not possible. */
const loadCompiler = () => require('typebox/compile') as typeof import('typebox/compile');
const loadValue = () => require('typebox/value') as typeof import('typebox/value');

const compiled = new WeakMap<TSchema, Validator>();

/** Compiles a schema with its first value. There are hundreds of schemas, and this keeps a start fast. */
function validatorOf(schema: TSchema): Validator {
  const known = compiled.get(schema);
  if (known !== undefined) return known;
  const validator: Validator = loadCompiler().Compile(schema);
  compiled.set(schema, validator);
  return validator;
}

/** Creates a checker outside of a route's schema. */
export function checker<S extends TSchema>(schema: S): Checker<Static<S>> {
  return {
    is: (value): value is Static<S> => validatorOf(schema).Check(value),
    issues(value, prefix = '') {
      const validator = validatorOf(schema);
      return validator.Check(value) ? {} : toIssues(validator.Errors(cut(schema, value)), schema, prefix);
    },
  };
}

/**
 * Fastify calls this for every schema of a route. Query and path parameters arrive as text and are converted to the
 * schema's types first. Bodies are not converted, so "1" is not a number there.
 */
export const validatorCompiler: FastifySchemaCompiler<TSchema> =
  ({ schema, httpPart }) =>
  (given: unknown) => {
    const value = httpPart === 'body' ? given : converted(schema, given);
    const validator = validatorOf(schema);
    if (validator.Check(value)) return { value };
    return { error: invalidFields(toIssues(validator.Errors(cut(schema, value)), schema, '')) };
  };

/** Converts texts to the types of the schema. An integer is written in digits: `1.5`, `1e1` and `0x10` stay texts. */
function converted(schema: TSchema, given: unknown): unknown {
  // The conversion changes its argument.
  const texts = isRecord(given) ? { ...given } : {};
  const value = loadValue().Value.Convert(schema, given);
  const { properties } = schema as { readonly properties?: unknown };
  if (!isRecord(value) || !isRecord(properties)) return value;
  const entries = Object.entries(value).map(([name, part]) => {
    const property = memberOf(properties, name);
    const isInteger = isRecord(property) && property.type === 'integer';
    return [name, isInteger && !/^-?\d+$/.test(String(texts[name])) ? texts[name] : part];
  });
  return Object.fromEntries(entries);
}

/**
 * Shortens lists that are too long, but leaves them too long. Findings are computed slowly, item by item, so tens of
 * thousands of items would delay all other requests for one message about their number.
 */
function cut(schema: unknown, value: unknown): unknown {
  if (!isRecord(schema)) return value;
  if (Array.isArray(value)) {
    const { items, maxItems } = listSchema(schema);
    const kept = typeof maxItems === 'number' ? value.slice(0, maxItems + 1) : value;
    return kept.map((item) => cut(items, item));
  }
  const { properties } = schema;
  if (!isRecord(value) || !isRecord(properties)) return value;
  const entries = Object.entries(value);
  return Object.fromEntries(entries.map(([name, part]) => [name, cut(memberOf(properties, name), part)]));
}

function memberOf(properties: Readonly<Record<string, unknown>>, name: string): unknown {
  return Object.hasOwn(properties, name) ? properties[name] : undefined;
}

/** Returns the list of a schema that may also be null. */
function listSchema(schema: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  const choices: readonly unknown[] = Array.isArray(schema.anyOf) ? schema.anyOf : [];
  const lists = choices.filter(isRecord).filter(({ type }) => type === 'array');
  return lists.length === 1 && lists[0] !== undefined ? lists[0] : schema;
}

/** Uses the first finding of a path, unless a later one has a text of its own in the schema. */
function toIssues(findings: readonly Finding[], schema: TSchema, prefix: string): Record<string, string> {
  const issues = new Map<string, string>();
  /** The types that a value may have, by its path. */
  const types = new Map<string, string[]>();
  const add = (path: string, text: string): void => {
    if (!issues.has(path)) issues.set(path, text);
  };
  for (const finding of findings) {
    const inside = dotted(prefix, finding.instancePath);
    const path = inside || 'body';
    const own = textIn(schema, finding.schemaPath);
    const type = finding.keyword === 'type' ? Reflect.get(finding.params, 'type') : undefined;
    if (own !== null) {
      issues.set(path, own);
      types.delete(path);
    } else if (finding.keyword === 'required') {
      for (const name of stringsIn(finding.params, 'requiredProperties')) {
        add(inside === '' ? name : `${inside}.${name}`, 'Required');
      }
    } else if (typeof type === 'string') {
      const known = types.get(path);
      if (known !== undefined) known.push(type);
      else if (!issues.has(path)) types.set(path, [type]);
      add(path, finding.message);
      // A finding for the whole object is skipped, because each unknown field also has its own finding.
    } else if (finding.keyword !== 'additionalProperties') add(path, textOf(finding));
  }
  for (const [path, all] of types) {
    const told = all.filter((type) => type !== 'null');
    // An object that may be null, and has a mistake inside.
    if (told.length === 0 && issues.keys().some((other) => other.startsWith(`${path}.`))) issues.delete(path);
    else if (told.length > 0) issues.set(path, `must be ${told.join(' or ')}`);
  }
  return Object.fromEntries(issues) satisfies Details;
}

function textOf(finding: Finding): string {
  switch (finding.keyword) {
    case 'enum':
      return `must be one of ${stringsIn(finding.params, 'allowedValues').join(', ')}`;
    case 'pattern':
      return 'pattern' in finding.params && finding.params.pattern === ID_PATTERN
        ? 'Invalid cuid2'
        : finding.message;
    case 'boolean':
      return finding.schemaPath.endsWith('/additionalProperties')
        ? 'is not a field of this request'
        : finding.message;
    default:
      return finding.message;
  }
}

function stringsIn(params: object, name: string): readonly string[] {
  const value: unknown = Reflect.get(params, name);
  return Array.isArray(value) ? value.map(String) : [];
}

/** Turns `/questions/0/headline` into `questions.0.headline`. */
function dotted(prefix: string, pointer: string): string {
  const parts = pointer
    .split('/')
    .slice(1)
    .map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'));
  return [...(prefix === '' ? [] : [prefix]), ...parts].join('.');
}

/** Returns the `text` of a schema, which is the message if a value does not fit this part of it. */
function textIn(schema: TSchema, schemaPath: string): string | null {
  let part: unknown = schema;
  for (const name of schemaPath.split('/').slice(1)) {
    if (typeof part !== 'object' || part === null) return null;
    part = Reflect.get(part, name);
  }
  const text: unknown = typeof part === 'object' && part !== null ? Reflect.get(part, 'text') : undefined;
  return typeof text === 'string' ? text : null;
}

/** @returns null if the field is absent or null @throws ApiError invalid_fields if it is not a date */
export function timestampIn(field: string, text: string | null | undefined): string | null {
  if (text === null || text === undefined) return null;
  const timestamp = readTimestamp(text);
  if (timestamp === null) throw invalidFields({ [field]: 'must be an ISO 8601 date' });
  return timestamp;
}
