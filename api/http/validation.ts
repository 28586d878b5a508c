/** Turns TypeBox's findings into an error of ours: one text for each field, under its dotted path. */

import { createRequire } from 'node:module';
import type { FastifySchemaCompiler } from 'fastify';
import type { Static, TSchema } from 'typebox';
import type { Validator } from 'typebox/compile';
import { invalidFields } from '#api/errors.ts';
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

/** No schema allows longer lists. */
const ITEMS_MAX = 1_000;

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
      return validator.Check(value) ? {} : toIssues(validator.Errors(cut(value)), schema, prefix);
    },
  };
}

/**
 * Fastify calls this for every schema of a route. Query and path parameters arrive as text and are converted to the
 * schema's types first. Bodies are not converted, so "1" is not a number there.
 */
export const validatorCompiler: FastifySchemaCompiler<TSchema> = ({ schema, httpPart }) => {
  const { issues } = checker(schema);
  return (given: unknown) => {
    const value = httpPart === 'body' ? given : loadValue().Value.Convert(schema, given);
    const found = issues(value);
    return Object.keys(found).length === 0 ? { value } : { error: invalidFields(found) };
  };
};

/**
 * Shortens long lists, but leaves them too long. Findings are computed slowly, item by item, so tens of thousands of
 * items would delay all other requests for one message about their number.
 */
function cut(value: unknown): unknown {
  if (Array.isArray(value)) return value.slice(0, ITEMS_MAX + 1).map(cut);
  if (!isRecord(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([name, part]) => [name, cut(part)]));
}

/** Uses the first finding of a path, unless a later one has a text of its own in the schema. */
function toIssues(findings: readonly Finding[], schema: TSchema, prefix: string): Record<string, string> {
  const issues = new Map<string, string>();
  for (const finding of findings) {
    const inside = dotted(prefix, finding.instancePath);
    const path = inside || 'body';
    const own = textIn(schema, finding.schemaPath);
    const known = issues.get(path);
    const { type } = finding.params as { readonly type?: unknown };
    if (own !== null) issues.set(path, own);
    else if (finding.keyword === 'required') {
      for (const name of stringsIn(finding.params, 'requiredProperties')) {
        issues.set(inside === '' ? name : `${inside}.${name}`, 'Required');
      }
    } else if (finding.keyword === 'type' && known?.startsWith('must be ')) {
      if (type !== 'null') issues.set(path, `${known} or ${type}`);
    } else if (known === undefined && !isImplied(finding)) issues.set(path, textOf(finding));
  }
  if (issues.size === 0) issues.set(prefix || 'body', 'does not have the right shape');
  return Object.fromEntries(issues);
}

/** Null goes without saying, and a finding for the whole of a value follows one for its parts. */
function isImplied({ keyword, params }: Finding): boolean {
  return keyword === 'anyOf' || keyword === 'additionalProperties' || Reflect.get(params, 'type') === 'null';
}

function textOf({ keyword, message, params, schemaPath }: Finding): string {
  if (keyword === 'enum') return `must be one of ${stringsIn(params, 'allowedValues').join(', ')}`;
  const isUnknown = keyword === 'boolean' && schemaPath.endsWith('/additionalProperties');
  return isUnknown ? 'is not a field of this request' : message;
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
