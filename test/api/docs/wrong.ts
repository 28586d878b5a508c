/** Makes requests with one mistake, based on the description. Pure. */
import { isRecord } from '#api/schemas.ts';
import { type Description, type Operation, recordAt } from '#test/support/description.ts';
import { resolved } from '#test/support/sample-body.ts';
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
const parts: readonly string[] = [
  'c0000000000000000000000000',
  'x',
  ' ',
  '%',
  '../x',
  "'",
  '\u0000',
  '\u{1f600}',
];

/** Replaces one id of the path and keeps the others. */
export function* wrongIds({ path }: Operation, ids: Ids): Generator<Ids> {
  for (const [, name = ''] of path.matchAll(/\{(\w+)\}/g)) {
    for (const part of parts) yield { ...ids, [name]: part };
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
  for (const name of new Set([...names, ...Object.keys(valid)])) {
    const { [name]: _, ...without } = valid;
    yield JSON.stringify(without);
    for (const value of foreign) yield JSON.stringify({ ...valid, [name]: value });
  }
  yield JSON.stringify({ ...valid, noSuchField: 1 });
}

export function* wrongQueries({ parameters }: Operation): Generator<string> {
  for (const { in: place, name } of parameters) {
    if (place !== 'query') continue;
    const key = encodeURIComponent(String(name));
    for (const value of ['', 'x', '-1', '0', '1.5', '1e99', '99999999999999999999', '%00', '{}']) {
      yield `${key}=${value}`;
    }
    yield `${key}=1&${key}=2`;
    yield `${key}[x]=1`;
  }
  yield 'noSuchParameter=1';
}
