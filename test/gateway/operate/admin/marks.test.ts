/** The events that the page marks in its chart. */
import t from 'tap';
import { Marks } from '#gateway/operate/admin/marks.ts';

const AT = 1_800_000_000_000;
const state = { policyVersion: 'a', policyRefusal: null, storeOutage: null, upstreamOutage: null };
const away = { from: AT - 9000, to: null };
const over = { from: AT - 9000, to: AT - 4000 };

t.test('a mark for each change, and none for the state at the start', async (t) => {
  const marks = new Marks(() => AT);
  marks.see(state);
  marks.see(state);
  t.strictSame(marks.list, []);
  marks.see({ ...state, policyVersion: 'b' });
  marks.see({ ...state, policyVersion: 'b', policyRefusal: 'line 3' });
  const later = { ...state, policyVersion: 'b' };
  marks.see({ ...later, policyRefusal: 'line 3', storeOutage: away });
  marks.see({ ...later, policyRefusal: 'line 3', storeOutage: away });
  marks.see({ ...later, storeOutage: over });
  marks.see({ ...later, storeOutage: over });
  t.strictSame(
    marks.list.map(({ kind, text }) => `${kind}: ${text}`),
    [
      'reload: policy file version b',
      'reload: the edited policy file is refused',
      'outage: the store is unavailable',
      'recovery: the store is available again',
    ],
  );
  const times = marks.list.slice(2).map(({ at }) => Date.parse(at));
  t.strictSame(times, [over.from, over.to], 'the times of the outage, not those at which it was noticed');
});

t.test('marks an outage that began before the start', async (t) => {
  const marks = new Marks(() => AT);
  marks.see({ ...state, storeOutage: away });
  t.match(marks.list, [{ kind: 'outage' }]);
});

t.test('marks an outage that nobody noticed while it lasted', async (t) => {
  const marks = new Marks(() => AT);
  marks.see({ ...state, storeOutage: { from: AT - 90_000, to: AT - 80_000 } });
  t.strictSame(marks.list, [], 'it was before the start');
  marks.see({ ...state, storeOutage: over });
  marks.see({ ...state, storeOutage: over });
  t.strictSame(
    marks.list.map(({ kind, at }) => [kind, Date.parse(at)]),
    [
      ['outage', over.from],
      ['recovery', over.to],
    ],
  );
});

t.test('the outage of a process that has ended is over', async (t) => {
  const marks = new Marks(() => AT);
  marks.see({ ...state, storeOutage: away });
  marks.see(state);
  t.match(marks.list, [{ kind: 'outage' }, { kind: 'recovery' }]);
});

t.test('marks an outage of the application with its reason, beside one of the store', async (t) => {
  const marks = new Marks(() => AT);
  const reason = 'nothing listens there';
  marks.see(state);
  marks.see({ ...state, upstreamOutage: { ...away, reason } });
  marks.see({ ...state, upstreamOutage: { ...away, reason }, storeOutage: away });
  marks.see({ ...state, upstreamOutage: { ...over, reason }, storeOutage: away });
  t.strictSame(
    marks.list.map(({ kind, of, text }) => [kind, of, text]),
    [
      ['outage', 'application', `the application does not answer: ${reason}`],
      ['outage', 'store', 'the store is unavailable'],
      ['recovery', 'application', 'the application answers again'],
    ],
  );
});

t.test('drops the oldest marks', async (t) => {
  const marks = new Marks(() => AT);
  for (let i = 0; i < 150; i++) marks.add('change', `ban ${i}`);
  t.equal(marks.list.length, 100);
  t.equal(marks.list[0]?.text, 'ban 50');
});
