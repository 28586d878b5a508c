import t from 'tap';
import { isId, newId, newUuid } from '#api/values/ids.ts';
import { readTimestamp, toTimestamp } from '#api/values/timestamps.ts';
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

t.test('ids: drops bytes that would make some characters more frequent', async (t) => {
  const given: Uint8Array[] = [new Uint8Array(25).fill(255), new Uint8Array(25).fill(251)];
  t.equal(
    newId(() => given.shift() ?? new Uint8Array(25)),
    `c${'z'.repeat(24)}`,
  );
});

t.test('refuses texts that cannot be ids', async (t) => {
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
  ['2026-02-30', null],
  ['2026-02-29', null],
  ['2028-02-29', '2028-02-29T00:00:00.000Z'],
  ['2026-04-31T12:00:00Z', null],
  ['2026-01-31T23:30:00-02:00', '2026-02-01T01:30:00.000Z'],
  ['tomorrow', null],
  ['1', null],
  ['Fri, 02 Jan 2026 03:04:05 GMT', null],
  ['', null],
];
for (const [text, expected] of dates) {
  t.test(`reads or refuses the date ${JSON.stringify(text)}`, async (t) => {
    t.equal(readTimestamp(text), expected);
  });
}

t.test('reads a time without a zone as UTC, in every zone of the process', async (t) => {
  const { TZ } = process.env;
  t.teardown(() => {
    if (TZ === undefined) delete process.env.TZ;
    else process.env.TZ = TZ;
  });
  process.env.TZ = 'America/New_York';
  t.not(new Date(2026, 0, 2).getTimezoneOffset(), 0, 'the process has another time zone');
  t.equal(readTimestamp('2026-01-02T03:04:05'), '2026-01-02T03:04:05.000Z');
  t.equal(readTimestamp('2026-01-02T03:04'), '2026-01-02T03:04:00.000Z');
});
