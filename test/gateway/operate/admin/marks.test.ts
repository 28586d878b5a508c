/** The events that the page marks in its chart. */
import t from 'tap';
import { Marks } from '#gateway/operate/admin/marks.ts';

const AT = 1_800_000_000_000;
const state = { policyVersion: 'a', policyRefusal: null, storeAwaySince: null };

t.test('a mark for each change, and none for the state at the start', async (t) => {
  const marks = new Marks(() => AT);
  marks.see(state);
  marks.see(state);
  t.strictSame(marks.list, []);
  marks.see({ ...state, policyVersion: 'b' });
  marks.see({ ...state, policyVersion: 'b', policyRefusal: 'line 3' });
  const since = '2026-11-23T10:00:00.000Z';
  marks.see({ policyVersion: 'b', policyRefusal: 'line 3', storeAwaySince: since });
  marks.see({ policyVersion: 'b', policyRefusal: 'line 3', storeAwaySince: since });
  marks.see({ policyVersion: 'b', policyRefusal: null, storeAwaySince: null });
  t.strictSame(
    marks.list.map(({ kind, text }) => `${kind}: ${text}`),
    [
      'reload: policy file version b',
      'reload: the edited policy file is refused',
      'outage: the store is unavailable',
      'recovery: the store is available again',
    ],
  );
  t.equal(marks.list[2]?.at, since, 'the mark has the time at which the outage began');
});

t.test('marks an outage that began before the start', async (t) => {
  const marks = new Marks(() => AT);
  marks.see({ ...state, storeAwaySince: '2026-11-23T10:00:00.000Z' });
  t.match(marks.list, [{ kind: 'outage' }]);
});

t.test('drops the oldest marks', async (t) => {
  const marks = new Marks(() => AT);
  for (let i = 0; i < 150; i++) marks.add('change', `ban ${i}`);
  t.equal(marks.list.length, 100);
  t.equal(marks.list[0]?.text, 'ban 50');
});
