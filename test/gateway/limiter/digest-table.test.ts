/** Compares the table with a plain map: random keys, random uses, and a table far smaller than the number of keys. */

import t from 'tap';
import { BYTES_PER_RECORD, DigestTable } from '#gateway/limiter/digest-table.ts';
import { fc } from '#test/support/fast-check.ts';

type Key = readonly [number, number, number, number];

/** Many keys have the same first word, so they collide in the index. */
const keyOf = (n: number): Key => [n % 7, n, 3, 4];

t.test('finds stored records, and nothing else', async (t) => {
  const table = new DigestTable(8);
  t.equal(table.get(keyOf(1)), null);
  table.put(keyOf(1), 4_000_000_000, 1.5e12 + 0.25, 50);
  t.strictSame(table.get(keyOf(1)), { count: 4_000_000_000, until: 1.5e12 + 0.25, slack: 50 });
  table.put(keyOf(1), 1, 2, 3);
  t.strictSame(table.peek(keyOf(1)), { count: 1, until: 2, slack: 3 }, 'replaced');
  t.equal(table.size, 1);
  t.equal(table.get([1, 1, 3, 5]), null, 'every word of the key is compared');
  table.moveTimes(10);
  t.equal(table.get(keyOf(1))?.until, 12);
  table.clear();
  t.equal(table.get(keyOf(1)), null);
  t.equal(table.size, 0);
});

t.test('drops the least recently used record when full', async (t) => {
  const table = new DigestTable(8);
  for (let n = 0; n < 8; n++) table.put(keyOf(n), 0, 0, 0);
  t.ok(table.get(keyOf(0)), 'used while in the older half');
  table.put(keyOf(8), 0, 0, 0);
  t.notOk(table.get(keyOf(1)), 'the oldest is dropped');
  t.ok(table.get(keyOf(0)));
  for (let n = 9; n < 15; n++) table.put(keyOf(n), 0, 0, 0);
  t.ok(table.peek(keyOf(0)));
  table.put(keyOf(15), 0, 0, 0);
  t.notOk(table.peek(keyOf(0)), 'a peek is no use');
  t.equal(table.size, 8);
});

t.test('random puts, uses and deletions: never a wrong record, never more than the capacity', async (t) => {
  const step = fc.record({ key: fc.nat(60), action: fc.constantFrom('put', 'get', 'delete') });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 400 }), (steps) => {
      const table = new DigestTable(16);
      const written = new Map<number, number>();
      for (const [i, { key, action }] of steps.entries()) {
        const entry = table.get(keyOf(key));
        if (entry !== null && entry.count !== written.get(key)) return false;
        if (action === 'delete') {
          table.delete(keyOf(key));
          if (table.get(keyOf(key)) !== null) return false;
        } else if (action === 'put') {
          table.put(keyOf(key), i + 1, 0, 0);
          written.set(key, i + 1);
          if (table.get(keyOf(key))?.count !== i + 1) return false;
        }
        if (table.size > 16) return false;
        const keys = Array.from({ length: table.capacity }, (_, at) => table.keyAt(at));
        const held = keys.filter((one) => one !== null);
        if (held.length !== table.size) return false;
        if (held.some((one) => table.peek(one)?.count !== written.get(one[1]))) return false;
      }
      return true;
    }),
    { numRuns: 2000 },
  );
  t.pass();
});

t.test('a flood takes the stated bytes, and no heap', async (t) => {
  t.ok(BYTES_PER_RECORD <= 64);
  const table = new DigestTable(65_536);
  const before = process.memoryUsage().heapUsed;
  // Digests are distributed evenly, so these are too.
  const digest = (n: number): Key => [Math.imul(n, 0x9e3779b1) >>> 2, n, 1, 2];
  for (let n = 0; n < 500_000; n++) table.put(digest(n), 1, n, 0);
  t.equal(table.size, 65_536);
  t.ok(process.memoryUsage().heapUsed - before < 8 * 1024 * 1024, 'records need no heap objects');
  t.ok(table.get(digest(499_999)));
});
