import { join } from 'node:path';
import t from 'tap';
import { isId, newId, newUuid } from '#api/values/ids.ts';
import { readTimestamp, toTimestamp } from '#api/values/timestamps.ts';
import { countingRandom } from '#test/support/api-app.ts';
import { casesUnder } from '#test/support/arrow-cases.ts';

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

t.test('reads or refuses the dates of dates.md', async (t) => {
  for (const [text = '', expected] of casesUnder(join(import.meta.dirname, 'dates.md'), 'How a date is read'))
    t.equal(readTimestamp(text) ?? 'refused', expected, text);
});

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
