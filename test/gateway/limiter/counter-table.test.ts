/** Compares the table with a plain map: random keys, random uses, and a table far smaller than the number of keys. */

import t from 'tap';
import { BYTES_PER_RECORD, CounterTable } from '#gateway/limiter/counter-table.ts';
import { fc } from '#test/support/fast-check.ts';

type Key = readonly [number, number, number, number];

/** Many keys have the same first word, so they collide in the index. */
const keyOf = (n: number): Key => [n % 7, n, 3, 4];

t.test('finds inserted records, and nothing else', async (t) => {
  const table = new CounterTable(8);
  t.equal(table.find(...keyOf(1)), -1);
  const place = table.insert(...keyOf(1));
  t.strictSame([table.count(place), table.until(place), table.slack(place)], [0, 0, 0]);
  table.set(place, 4_000_000_000, 1.5e12 + 0.25, 50);
  const found = table.find(...keyOf(1));
  t.strictSame(
    [table.count(found), table.until(found), table.slack(found)],
    [4_000_000_000, 1.5e12 + 0.25, 50],
  );
  t.equal(table.find(1, 1, 3, 5), -1, 'every word of the key is compared');
  table.clear();
  t.equal(table.find(...keyOf(1)), -1);
  t.equal(table.size, 0);
});

t.test('drops the least recently used record when full', async (t) => {
  const table = new CounterTable(8);
  for (let n = 0; n < 8; n++) table.insert(...keyOf(n));
  t.not(table.find(...keyOf(0)), -1, 'used while in the older half');
  table.insert(...keyOf(8));
  t.equal(table.find(...keyOf(1)), -1, 'the oldest is dropped');
  t.not(table.find(...keyOf(0)), -1);
  t.equal(table.size <= 8, true);
});

t.test(
  'random inserts, uses and deletions: never a wrong record, never more than the capacity',
  async (t) => {
    const step = fc.record({ key: fc.nat(60), action: fc.constantFrom('insert', 'find', 'delete') });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 400 }), (steps) => {
        const table = new CounterTable(16);
        const written = new Map<number, number>();
        for (const [i, { key, action }] of steps.entries()) {
          const place = table.find(...keyOf(key));
          if (place >= 0 && table.count(place) !== written.get(key)) return false;
          if (action === 'delete') {
            table.delete(...keyOf(key));
            if (table.find(...keyOf(key)) >= 0) return false;
          } else if (action === 'insert') {
            const at = place < 0 ? table.insert(...keyOf(key)) : place;
            table.set(at, i + 1, 0, 0);
            written.set(key, i + 1);
            if (table.find(...keyOf(key)) < 0) return false;
          }
          if (table.size > 16) return false;
          const keys = Array.from({ length: table.capacity }, (_, at) => table.keyAt(at));
          if (keys.filter((one) => one !== null).length !== table.size) return false;
          if (keys.some((one, at) => one !== null && table.placeOf(...one) !== at)) return false;
        }
        return true;
      }),
      { numRuns: 2000 },
    );
    t.pass();
  },
);

t.test('a flood takes the stated bytes, and no heap', async (t) => {
  t.ok(BYTES_PER_RECORD <= 64);
  const table = new CounterTable(65_536);
  const before = process.memoryUsage().heapUsed;
  // Digests are distributed evenly, so these are too.
  const digest = (n: number): Key => [Math.imul(n, 0x9e3779b1) >>> 2, n, 1, 2];
  for (let n = 0; n < 500_000; n++) table.set(table.insert(...digest(n)), 1, n, 0);
  t.equal(table.size, 65_536);
  t.ok(process.memoryUsage().heapUsed - before < 8 * 1024 * 1024, 'records need no heap objects');
  t.not(table.find(...digest(499_999)), -1);
});
