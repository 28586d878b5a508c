/** Creates hostile bodies: valid ones, nearly valid ones, junk, and bodies that are as large as the limits allow. */

import { isRecord } from '#api/schemas.ts';
import { type Operation, recordAt } from '#test/support/description.ts';
import { fc } from '#test/support/fast-check.ts';
import { resolved, sampleOf } from '#test/support/sample-body.ts';
import { arbitraryOf } from '#test/support/schema-arbitrary.ts';

type Part = Readonly<Record<string, unknown>>;

/** Sizes of large bodies. The last two are just below and just above the API's limit. */
const BYTES = [1_000_000, 2_090_000, 2_097_200] as const;
const DEPTHS = [90, 99, 5_000] as const;
const BACKTRACKING = ['(a+)+$', '^(([a-z])+.)+[A-Z]([a-z])+$', '(.*a){25}', 'a{1000}{1000}'];
const EVIL_PATTERNS = [...BACKTRACKING, '[', '\\', '(?=a)'];

interface BodySource {
  readonly schemas: Part;
  /** A body that the API accepts. */
  readonly valid: Part;
}

/** @returns texts of bodies for this operation */
export function hostileBodies(operation: Operation, { schemas, valid }: BodySource): fc.Arbitrary<string> {
  const { body } = operation;
  const properties = recordAt(resolved(body, schemas), 'properties');
  const names = [...new Set([...Object.keys(properties), ...Object.keys(valid)])];
  const shaped = body === null ? fc.jsonValue({ maxDepth: 4 }) : arbitraryOf(body, schemas);
  const near = shaped.chain((made) =>
    fc.subarray(Object.keys(valid)).map((kept) => {
      const right = Object.fromEntries(kept.map((name) => [name, valid[name]]));
      return isRecord(made) ? { ...made, ...right } : made;
    }),
  );
  /** Returns a very large value for a member: a long text, many items, many keys, long arrays, or slow patterns. */
  const largeValue = (name: string, bytes: number, kind: number): unknown => {
    const [item] = Array.isArray(valid[name]) ? valid[name] : [];
    const { items = {} } = resolved(properties[name], schemas);
    const one = item ?? sampleOf(items, { schemas, known: {}, unique: 'item' });
    const size = JSON.stringify(one)?.length ?? 2;
    switch (kind) {
      case 0:
        return 'x'.repeat(bytes);
      case 1:
        return Array.from({ length: Math.ceil(bytes / (size + 24)) }, (_, at) => numbered(one, at));
      case 2:
        return Object.fromEntries(Array.from({ length: bytes / 24 }, (_, at) => [`key${at}`, 'value']));
      case 3:
        return Array.from({ length: bytes / 2 }, () => 0);
      case 4:
        return '\u{1f600}'.repeat(bytes / 4);
      default:
        return EVIL_PATTERNS.map((pattern) => ({ type: 'pattern', params: { pattern: pattern.repeat(30) } }));
    }
  };
  const name = fc.constantFrom(...(names.length === 0 ? ['x'] : names));
  const oneWrong = fc
    .tuple(name, fc.jsonValue({ maxDepth: 3 }))
    .map(([name, value]) => ({ ...valid, [name]: value }));
  const large = fc
    .tuple(name, fc.constantFrom(...BYTES), fc.nat(5))
    .map(([name, bytes, kind]) => ({ ...valid, [name]: largeValue(name, bytes, kind) }));
  return fc.oneof(
    { weight: 6, arbitrary: near.map(toText) },
    { weight: 3, arbitrary: oneWrong.map(toText) },
    { weight: 2, arbitrary: fc.constant(toText(valid)) },
    { weight: 1, arbitrary: junk() },
    { weight: 1, arbitrary: large.map(toText) },
  );
}

/** Gives the item its own id and name, because some lists require unique items. */
function numbered(item: unknown, at: number): unknown {
  if (!isRecord(item)) return item;
  return {
    ...item,
    ...('id' in item ? { id: `q${at}` } : {}),
    ...('name' in item ? { name: `n${at}` } : {}),
  };
}

function junk(): fc.Arbitrary<string> {
  return fc.oneof(
    fc.string({ unit: 'binary', maxLength: 300 }),
    fc.json({ maxDepth: 6 }),
    fc.constantFrom(...DEPTHS).map((depth) => `${'['.repeat(depth)}${']'.repeat(depth)}`),
    fc.constantFrom(...DEPTHS).map((depth) => `${'{"a":'.repeat(depth)}1${'}'.repeat(depth)}`),
    fc.constantFrom(...BYTES).map((bytes) => ' '.repeat(bytes)),
    fc.constantFrom(...BYTES).map((bytes) => `"${'\\u0041'.repeat(bytes / 6)}"`),
    fc.constantFrom('', 'null', '{"__proto__":{"x":1}}', '{"a":1,"a":2}', '\ufeff{}', '1e999', '-0'),
  );
}

function toText(value: unknown): string {
  return JSON.stringify(value) ?? '';
}
