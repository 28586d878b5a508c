import t from 'tap';
import { DECISION_ID_LENGTH, DecisionIds, isDecisionId } from '#gateway/reply/decision-ids.ts';

const BYTES = Uint8Array.from([1, 2, 3, 4, 5, 6, 7, 8]);

t.test('ids differ, have one length, and are in sequence', async (t) => {
  const ids = new DecisionIds(BYTES);
  const made = Array.from({ length: 5000 }, () => ids.next());
  t.equal(new Set(made).size, 5000);
  t.ok(made.every((id) => id.length === DECISION_ID_LENGTH && isDecisionId(id)));
  t.equal(made[0]?.slice(-8), '00000000');
  t.equal(made[1024]?.slice(-8), '00000100');
  t.strictSame([...made].sort(), made, 'ids sort by their time');
});

t.test('another process makes other ids', async (t) => {
  const other = new DecisionIds(BYTES.toReversed());
  t.not(new DecisionIds(BYTES).next().slice(0, 12), other.next().slice(0, 12));
});

t.test('refuses malformed ids', async (t) => {
  for (const text of ['', 'x', '../../metrics', `${'0'.repeat(19)}-`, '0'.repeat(21), 'I'.repeat(20)])
    t.notOk(isDecisionId(text), text);
});
