import t from 'tap';
import { excessOf } from '#api/http/json-counts.ts';
import { isRecord } from '#api/values/schemas.ts';
import { fc } from '#test/support/fast-check.ts';

function namesIn(value: unknown): readonly string[] {
  const children = Array.isArray(value) ? value : isRecord(value) ? Object.values(value) : [];
  return [...(isRecord(value) ? Object.keys(value) : []), ...children.flatMap(namesIn)];
}

function hasMoreNamesThan(text: Buffer, names: number): boolean {
  return excessOf(text, { names, values: Infinity }) === 'names';
}

function commasIn(value: unknown): number {
  const children = Array.isArray(value) ? value : isRecord(value) ? Object.values(value) : [];
  return children.reduce<number>((sum, child) => sum + commasIn(child), Math.max(0, children.length - 1));
}

t.test('counts as many names as the parsed value has', async (t) => {
  // Names that differ only in their escapes count as two. These have no escapes.
  const value = fc.jsonValue({ maxDepth: 5 });
  fc.assert(
    fc.property(value, fc.constantFrom(undefined, '\t', 2), (made, indent) => {
      const parsed: unknown = JSON.parse(JSON.stringify(made));
      const text = Buffer.from(JSON.stringify(parsed, null, indent));
      const count = new Set(namesIn(parsed)).size;
      return !hasMoreNamesThan(text, count) && (count === 0 || hasMoreNamesThan(text, count - 1));
    }),
    { numRuns: 500 },
  );
  t.pass('500 texts');
});

t.test('stops at the bound', async (t) => {
  fc.assert(
    fc.property(fc.jsonValue({ maxDepth: 5 }), (made) => {
      const parsed: unknown = JSON.parse(JSON.stringify(made));
      const text = Buffer.from(JSON.stringify(parsed));
      const count = commasIn(parsed);
      const excess = (values: number) => excessOf(text, { names: Infinity, values });
      return excess(count) === null && (count === 0 || excess(count - 1) === 'values');
    }),
    { numRuns: 500 },
  );
  t.equal(
    excessOf(Buffer.from('["a,b,c","\\",,"]'), { names: 9, values: 1 }),
    null,
    'commas in strings are not counted',
  );
});

t.test('ends on text that is not JSON', async (t) => {
  for (const text of ['', '"', '"\\', ']}]', '{{{{', ':::', '{"a":"\\"']) {
    t.equal(hasMoreNamesThan(Buffer.from(text), 3), false, text);
  }
  t.equal(
    hasMoreNamesThan(Buffer.from('{"a":"\\":b\\":","b\\"::" :"c"}'), 2),
    false,
    'colons in strings are not counted',
  );
});
