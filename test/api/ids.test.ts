import t from 'tap';
import { isId, newId, newUuid } from '#api/ids.ts';
import { readTimestamp, toTimestamp } from '#api/timestamps.ts';
import { countingRandom } from '#test/support/api-app.ts';

t.test('ids: 25 lower-case alphanumerics, all different', async (t) => {
  const random = countingRandom();
  const ids = Array.from({ length: 1_000 }, () => newId(random));
  t.equal(new Set(ids).size, ids.length);
  t.strictSame(
    ids.filter((id) => !/^c[a-z0-9]{24}$/.test(id)),
    [],
  );
  t.ok(ids.every(isId));
});

t.test('ids: bytes that would favour some characters are thrown away', async (t) => {
  const given: Uint8Array[] = [new Uint8Array(25).fill(255), new Uint8Array(25).fill(251)];
  t.equal(
    newId(() => given.shift() ?? new Uint8Array(25)),
    `c${'z'.repeat(24)}`,
  );
});

t.test('what cannot be an id', async (t) => {
  for (const text of ['', 'A', 'a-b', 'a b', 'a\n', '\0', 'é', 'x'.repeat(65)]) t.notOk(isId(text), text);
});

t.test('UUIDs are of version 4', async (t) => {
  t.equal(
    newUuid(() => new Uint8Array(16).fill(255)),
    'ffffffff-ffff-4fff-bfff-ffffffffffff',
  );
});

t.test('timestamps have three decimals', async (t) => {
  t.equal(toTimestamp(0), '1970-01-01T00:00:00.000Z');
});

const dates: readonly (readonly [string, string | null])[] = [
  ['2026-01-02T03:04:05.678Z', '2026-01-02T03:04:05.678Z'],
  ['2026-01-02T03:04:05Z', '2026-01-02T03:04:05.000Z'],
  ['2026-01-02T03:04:05.123456+01:00', '2026-01-02T02:04:05.123Z'],
  ['2026-01-02', '2026-01-02T00:00:00.000Z'],
  ['2026-13-02', null],
  ['2026-02-30T99:00', null],
  ['tomorrow', null],
  ['1', null],
  ['Fri, 02 Jan 2026 03:04:05 GMT', null],
  ['', null],
];
for (const [text, expected] of dates) {
  t.test(`date ${JSON.stringify(text)}`, async (t) => {
    t.equal(readTimestamp(text), expected);
  });
}
