import t from 'tap';
import { parse } from 'yaml';
import { toYaml } from '#api/docs/yaml.ts';
import { fc } from '#test/support/fast-check.ts';

t.test('a YAML parser reads the same values that were written', async (t) => {
  const values = fc.jsonValue({ maxDepth: 4 }).map((value) => JSON.parse(JSON.stringify(value)));
  fc.assert(
    fc.property(values, (value) => {
      t.strictSame(parse(toYaml(value)), value);
    }),
    { numRuns: 200 },
  );
});

t.test('writes one indented line for each value, and quotes only where it must', async (t) => {
  const text = toYaml({ a: { b: [1, { c: 'x: #' }], '200': [], no: {} }, d: null });
  t.equal(text, 'a:\n  "200": []\n  b:\n    - 1\n    -\n      c: "x: #"\n  "no": {}\nd: null\n');
});
