/** A line is never longer than a pipe takes in one write, whatever it contains. */

import t from 'tap';
import { LINE_BYTES_MAX, lineText } from '#gateway/observe/access-log/line-text.ts';
import type { LogLine } from '#gateway/observe/log-line.ts';
import { anyText } from '#test/support/any-text.ts';
import { fc } from '#test/support/fast-check.ts';

const usual: LogLine = {
  time: '2026-11-22T08:23:01.123Z',
  method: 'GET',
  path: '/items/1',
  policies: ['items'],
  uncounted: [],
  identities: { ip: 'BIBL6vGlykAjmy6Ss8nJow' },
  unproven: [],
  marked: [],
  cut: false,
};

t.test('a usual line is JSON without escapes', async (t) => {
  t.equal(lineText(usual), `${JSON.stringify(usual)}\n`);
});

t.test('escapes characters beyond ASCII, and reads them back unchanged', async (t) => {
  const line = { ...usual, path: '/caf\u00e9/\ud83d\ude00/"' };
  const text = lineText(line);
  t.match(text, /^[\0-\x7f]*\n$/);
  t.strictSame(JSON.parse(text), line);
});

t.test(
  'a line that is too long loses the policies first, then identities and the end of the path',
  async (t) => {
    const policies = Array.from({ length: 100 }, (_, i) => `${i}`.padEnd(64, '-'));
    const path = `/${'a'.repeat(999)}`;
    const { identities } = usual;
    const line = { ...usual, policies, path };
    t.match(JSON.parse(lineText(line)), { shortened: true, policies: [], identities, path });
    const wide = `/${'\u00e9'.repeat(999)}`;
    const cut = JSON.parse(lineText({ ...line, path: wide }));
    t.match(cut, { shortened: true, identities: {}, path: wide.slice(0, 400) });
  },
);

t.test('every line is one JSON document, whatever it contains', async (t) => {
  const name = fc.tuple(fc.nat(999), fc.nat(255)).map(([i, length]) => `${i}`.padEnd(length, 'x'));
  const line = fc.record({
    path: fc.option(anyText({ maxLength: 1000, size: 'max' })),
    policies: fc.array(name, { maxLength: 60, size: 'max' }),
    uncounted: fc.array(name, { maxLength: 60, size: 'max' }),
    identities: fc.dictionary(name, fc.constant('A'.repeat(22)), { maxKeys: 30, size: 'max' }),
    unproven: fc.array(name, { maxLength: 30, size: 'max' }),
    marked: fc.array(name, { maxLength: 30, size: 'max' }),
  });
  let shortened = 0;
  fc.assert(
    fc.property(line, (fields) => {
      const text = lineText({ ...usual, ...fields, policy: 'p'.repeat(64), id: '0'.repeat(20) });
      t.ok(Buffer.byteLength(text) <= LINE_BYTES_MAX);
      const read = JSON.parse(text);
      if (read.shortened === true) shortened++;
      else t.same(read.policies, fields.policies);
      return text.indexOf('\n') === text.length - 1;
    }),
    { numRuns: 300 },
  );
  t.ok(shortened > 0, `${shortened} shortened`);
});
