/** Makes requests with one mistake, based on the description. */
import { isRecord } from '#api/values/schemas.ts';
import { type Description, type Operation, recordAt } from '#test/support/description.ts';
import { resolved } from '#test/support/sample-body.ts';
import { some } from '#test/support/seed.ts';
import type { Ids } from '#test/support/world.ts';

/** Has a difficult value of every type. */
const foreign: readonly unknown[] = [null, -1, 1e308, '', true, [{}], { a: { b: [] } }];
const wholes: readonly string[] = [
  '',
  '{',
  'null',
  '0',
  '"x"',
  '[]',
  '{}',
  '{"__proto__":{}}',
  '\u0000',
  '{"a":"\\u0000"}',
];
/** An id that does not exist, and one that no database stores. */
const unknowns: readonly string[] = ['c0000000000000000000000000', '\u0000'];
const parts: readonly string[] = ['x', ' ', '%', '../x', "'", '\u{1f600}'];

/** Replaces one id of the path and keeps the others. */
export function* wrongIds({ path }: Operation, ids: Ids): Generator<Ids> {
  for (const [, name = ''] of path.matchAll(/\{(\w+)\}/g)) {
    for (const part of [...unknowns, ...some(parts, path.length)]) yield { ...ids, [name]: part };
  }
}

/** @param right a valid body, as JSON */
export function* wrongBodies(
  { body }: Operation,
  { schemas }: Description,
  right: string | Buffer | undefined,
): Generator<string> {
  yield* wholes;
  if (body === null) return;
  const known: unknown = JSON.parse(String(right ?? '{}'));
  const valid = isRecord(known) ? known : {};
  const names = Object.keys(recordAt(resolved(body, schemas), 'properties'));
  for (const [i, name] of [...new Set([...names, ...Object.keys(valid)])].entries()) {
    const { [name]: _, ...without } = valid;
    yield JSON.stringify(without);
    for (const value of some(foreign, i)) yield JSON.stringify({ ...valid, [name]: value });
  }
  yield JSON.stringify({ ...valid, noSuchField: 1 });
}

const inQueries: readonly string[] = ['', 'x', '-1', '0', '1.5', '1e99', '99999999999999999999', '{}'];

export function* wrongQueries({ parameters }: Operation): Generator<string> {
  for (const [i, { in: place, name }] of parameters.entries()) {
    if (place !== 'query') continue;
    const key = encodeURIComponent(String(name));
    yield `${key}=%00`;
    for (const value of some(inQueries, i)) yield `${key}=${value}`;
    yield `${key}=1&${key}=2`;
    yield `${key}[x]=1`;
  }
  yield 'noSuchParameter=1';
}
