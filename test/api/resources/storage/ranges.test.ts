import t from 'tap';
import { httpDate, select } from '#api/resources/storage/ranges.ts';

const file = { size: 100, etag: '"v1"', modifiedAt: Date.UTC(2026, 0, 2, 3, 4, 5, 678) };
const date = httpDate(file.modifiedAt);

for (const [range, first, last] of [
  ['bytes=0-0', 0, 0],
  ['bytes=0-99', 0, 99],
  ['bytes=10-', 10, 99],
  ['bytes=-1', 99, 99],
  ['bytes=-100', 0, 99],
  ['bytes=-1000', 0, 99],
  ['bytes=90-1000', 90, 99],
] as const) {
  t.strictSame(select(file, { range }), { first, last }, range);
}
for (const range of ['bytes=100-', 'bytes=100-200', 'bytes=-0']) {
  t.strictSame(select(file, { range }), 'unsatisfiable', range);
}
for (const range of [
  'bytes=',
  'bytes=-',
  'bytes=5-4',
  'bytes=0-1,5-6',
  'items=0-1',
  'bytes=a-b',
  'bytes=1e1-',
  `bytes=${'9'.repeat(20)}-`,
  '',
]) {
  t.strictSame(select(file, { range }), null, `${range} is answered with the whole`);
}
t.strictSame(select({ ...file, size: 0 }, { range: 'bytes=0-' }), 'unsatisfiable');
t.strictSame(select({ ...file, size: 0 }, { range: 'bytes=-5' }), 'unsatisfiable');
t.strictSame(select(file, {}), null);

t.test('If-Range: only with the version that the first part came from', async (t) => {
  const range = 'bytes=0-1';
  for (const ifRange of [file.etag, date])
    t.strictSame(select(file, { range, ifRange }), { first: 0, last: 1 });
  for (const ifRange of ['"v2"', 'W/"v1"', httpDate(file.modifiedAt + 1000), 'x']) {
    t.equal(select(file, { range, ifRange }), null, ifRange);
  }
});

t.test('If-None-Match takes precedence; the date counts without it', async (t) => {
  for (const ifNoneMatch of ['"v1"', '*', 'W/"v1"', '"v0", "v1"']) {
    t.equal(select(file, { ifNoneMatch, range: 'bytes=0-1' }), 'notModified', ifNoneMatch);
  }
  t.equal(select(file, { ifNoneMatch: '"v2"', ifModifiedSince: date }), null);
  t.equal(select(file, { ifModifiedSince: date }), 'notModified');
  t.equal(select(file, { ifModifiedSince: httpDate(file.modifiedAt - 1000) }), null);
  t.equal(select(file, { ifModifiedSince: 'yesterday' }), null);
});
