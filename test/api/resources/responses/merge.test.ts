import t from 'tap';
import { extractFromData, mergeTimes } from '#api/resources/responses/merge.ts';

t.test('merges times, limits them to a day, and sums them at the end', async (t) => {
  t.strictSame(mergeTimes({ a: 1, _total: 1 }, { b: 2 }, false), { a: 1, b: 2 });
  t.strictSame(mergeTimes({ a: 1 }, { a: 5, b: -2, c: 1e15, _total: 9 }, true), {
    a: 5,
    b: 0,
    c: 86_400_000,
    _total: 86_400_005,
  });
  t.strictSame(mergeTimes({}, {}, true), {}, 'without times there is no sum');
  t.strictSame(mergeTimes({ a: 1, b: 2, _total: 3 }, { b: 5, _total: 6 }, true), { a: 1, b: 5, _total: 6 });
});

const none = new Set<string>();
t.test('takes language and times out of answers if they have that shape', async (t) => {
  t.strictSame(extractFromData({ q: 'a', language: 'de', ttc: { q: 1 } }, none), {
    data: { q: 'a' },
    language: 'de',
    ttc: { q: 1 },
  });
  const others = { language: ['de'], ttc: { q: 'x' } };
  t.strictSame(extractFromData(others, none), { data: others });
  const own = { language: 'Latin', ttc: 'soon' };
  t.strictSame(extractFromData(own, new Set(['language', 'ttc'])), { data: own });
});
