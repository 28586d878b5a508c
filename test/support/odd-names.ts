/**
 * Random queries whose names almost spell a field, and the check that the gateway misses no value that an application
 * reads from them.
 */
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { fieldOf } from '#gateway/identity/body-field.ts';
import { comparable } from '#gateway/identity/comparable.ts';
import { presentedValues } from '#gateway/identity/credential.ts';
import { hasParameter } from '#gateway/identity/pairs.ts';

export const FIELD = 'api_key';
const SOURCES = [{ kind: 'query', parameter: FIELD }] as const;

const NAMES = [
  'api_key',
  'api%5Fkey',
  '%61pi_key',
  'api.key',
  'api+key',
  'api[key',
  'api%5Bkey',
  'a[pi_key',
  'apikey',
];
const CHARACTERS = ['[', ']', '%5B', '%5d', '+', '%20', '%09', '.', '%2E', '%00', '_', 'x', '0'];
const BROKEN = ['=', ';', '%', '%2', '%ff', '%255B', '?', '__proto__'];

const junk = fc.oneof(
  { arbitrary: fc.constantFrom(...CHARACTERS), weight: 5 },
  { arbitrary: fc.constantFrom(...BROKEN), weight: 1 },
);
const some = fc.array(junk, { maxLength: 3 }).map((parts) => parts.join(''));
const name = fc.oneof(
  { arbitrary: fc.constant('api_key'), weight: 2 },
  { arbitrary: fc.constantFrom(...NAMES), weight: 1 },
);
const value = fc.oneof(
  { arbitrary: fc.constantFrom('V', 'W'), weight: 4 },
  { arbitrary: fc.constantFrom('V;x', 'W]=V', 'W%5D=V', '=V', '[V]', '+V'), weight: 1 },
);
const pair = fc
  .tuple(some, name, some, value)
  .map(([before, spelled, after, sent]) => `${before}${spelled}${after}=${sent}`);
const query = fc
  .array(fc.tuple(fc.constantFrom('&', '&', ';'), pair), { minLength: 1, maxLength: 3 })
  .map((pairs) => pairs.map(([separator, text], i) => (i === 0 ? '' : separator) + text).join(''));

/** Returns the same queries each time. */
export function oddQueries(count: number): string[] {
  return fc.sample(query, { seed: 34, numRuns: count });
}

/** @param read what the application found under the name of the field */
export function mustBeCounted(text: string, read: unknown, parser: string): void {
  if (Array.isArray(read) ? read.length > 0 : (read ?? null) !== null)
    assert.ok(hasParameter(`/a?${text}`, FIELD), `the condition: ${parser} finds it in ${text}`);
  for (const found of stringsIn(read)) {
    const bare = found.replace(/^[\t-\r ]+|[\t-\r ]+$/g, '');
    // Parsers differ in values with a malformed escape, which are no credential.
    if (bare === '' || /[%\ufffd]/.test(bare)) continue;
    const told = `${parser} reads ${JSON.stringify(found)} from ${text}`;
    // If the value has a semicolon, the gateway may read only what precedes it.
    const cut = bare.split(';', 1)[0]?.trim() ?? '';
    // A request with several values is refused, and each of them is compared with bans.
    const values = presentedValues([], SOURCES, `/a?${text}`);
    assert.ok(values.includes(bare) || values.includes(cut), `the credential: ${told}`);
    const field = fieldOf({ kind: 'form', bytes: Buffer.from(text) }, '/a', FIELD);
    if (field.kind === 'value')
      assert.ok([bare, cut].map(comparable).includes(field.value ?? ''), `the field: ${told}`);
  }
}

/** Applications use a list with one value as that value. */
function stringsIn(read: unknown): string[] {
  if (typeof read === 'string') return [read];
  if (typeof read !== 'object' || read === null) return [];
  return Object.values(read).filter((one) => typeof one === 'string');
}
