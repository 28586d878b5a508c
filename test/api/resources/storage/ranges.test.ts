import t from 'tap';
import { select } from '#api/resources/storage/ranges.ts';

for (const [range, first, last] of [
  ['bytes=0-0', 0, 0],
  ['bytes=0-99', 0, 99],
  ['bytes=10-', 10, 99],
  ['bytes=-1', 99, 99],
  ['bytes=-1000', 0, 99],
  ['bytes=90-1000', 90, 99],
] as const)
  t.strictSame(select(100, range), { first, last }, range);

for (const range of ['bytes=100-', 'bytes=100-200', 'bytes=-0'])
  t.equal(select(100, range), 'unsatisfiable', range);

for (const range of ['bytes=', 'bytes=-', 'bytes=5-4', 'bytes=0-1,5-6', 'items=0-1', 'bytes=a-b', ''])
  t.equal(select(100, range), null, `${range} is answered with the whole`);
t.equal(select(100, `bytes=${'9'.repeat(20)}-`), null);
t.equal(select(100, undefined), null);
t.equal(select(0, 'bytes=0-'), 'unsatisfiable');
