/**
 * Generates values from a JSON schema, for property-based tests. They have the documented shape, but now and then a
 * part of them does not belong there. Such values get further than random ones.
 */

import { isRecord } from '#api/values/schemas.ts';
import { fc } from './fast-check.ts';

type Schema = Readonly<Record<string, unknown>>;

/** Depth of free values; shapes are as deep as their schema. */
const FREE_DEPTH = 3;
const ITEMS_MAX = 3;
/** At each place, one of this number of values has a foreign type on average. */
const FOREIGN_ONE_IN = 15;
/** Values of the right type that are hard to handle. */
const numbers = [0, -0, -1, 0.1, 2 ** 31, 2 ** 53, -(2 ** 63), 1e308, 5e-324];
const texts = [
  '',
  ' ',
  '0',
  'null',
  'a\u{1f600}',
  '\u202e',
  '../..',
  '#recall:x/fallback:y#',
  '$ne',
  '\ufffe',
];
const hugeText = 'x'.repeat(70_000);

// These are built once: fast-check computes the letters of each string anew, and schemas have hundreds of texts.
const free = fc.jsonValue({ maxDepth: FREE_DEPTH });
const anyNumber = fc.oneof(fc.integer(), fc.double({ noNaN: true }), fc.constantFrom(...numbers));
const anyName = fc.oneof(fc.string(), fc.constantFrom('q1', 'default', 'toString'));
/** Huge texts are rare: a survey has dozens of texts, and one huge one is as good a test as twenty. */
const anyText = fc.oneof(
  { weight: 10, arbitrary: fc.string({ unit: 'grapheme' }) },
  { weight: 10, arbitrary: fc.constantFrom(...texts) },
  { weight: 1, arbitrary: fc.constant(hugeText) },
);

/** @param definitions what `$ref`s of the form `#/components/schemas/Name` lead to */
export function arbitraryOf(
  schema: unknown,
  definitions: Readonly<Record<string, unknown>>,
): fc.Arbitrary<unknown> {
  const part = (given: unknown): fc.Arbitrary<unknown> => {
    const found = resolved(given, definitions);
    return fc.oneof({ weight: FOREIGN_ONE_IN - 1, arbitrary: shaped(found) }, { weight: 1, arbitrary: free });
  };
  const shaped = (found: Schema): fc.Arbitrary<unknown> => {
    if (Array.isArray(found.enum)) return fc.constantFrom(...found.enum);
    if ('const' in found) return fc.constant(found.const);
    const options = found.anyOf ?? found.oneOf;
    if (Array.isArray(options)) return fc.oneof(...options.map(part));
    switch (Array.isArray(found.type) ? found.type[0] : found.type) {
      case 'string':
        return text(found);
      case 'number':
      case 'integer':
        return anyNumber;
      case 'boolean':
        return fc.boolean();
      case 'null':
        return fc.constant(null);
      case 'array':
        return fc.array(part(found.items ?? {}), { maxLength: ITEMS_MAX });
      case 'object':
        return record(found);
      default:
        return free;
    }
  };
  const record = ({ additionalProperties, properties, required }: Schema): fc.Arbitrary<unknown> => {
    const named = Object.entries(isRecord(properties) ? properties : {});
    const requiredKeys = Array.isArray(required) ? required.map(String) : [];
    const known = fc.record(Object.fromEntries(named.map(([name, child]) => [name, part(child)])), {
      requiredKeys: requiredKeys.filter((name) => named.some(([key]) => key === name)),
    });
    if (!isRecord(additionalProperties)) return known;
    const more = fc.dictionary(anyName, part(additionalProperties), { maxKeys: ITEMS_MAX });
    return fc.tuple(more, known).map(([a, b]) => ({ ...a, ...b }));
  };
  return part(schema);
}

function text({ pattern }: Schema): fc.Arbitrary<string> {
  return typeof pattern === 'string' ? fc.oneof(fc.stringMatching(new RegExp(pattern)), anyText) : anyText;
}

/** @throws Error for a reference that leads nowhere: the document would be wrong */
function resolved(schema: unknown, definitions: Readonly<Record<string, unknown>>): Schema {
  const found = isRecord(schema) ? schema : {};
  if (typeof found.$ref !== 'string') return found;
  const target = definitions[found.$ref.split('/').at(-1) ?? ''];
  if (!isRecord(target)) throw new Error(`${found.$ref} is not defined`);
  return target;
}
