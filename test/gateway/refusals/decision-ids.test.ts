/** Tests ids of refusals. */
import t from 'tap';
import { DecisionIds, isDecisionId } from '#gateway/refusals/decision-ids.ts';

t.test('ids differ, also in other processes and after a restart', async (t) => {
  const processes = ['a 1', 'b 1', 'a 2'].map((name) => new DecisionIds(name));
  const made = processes.flatMap((ids) => Array.from({ length: 1000 }, () => ids.next()));
  t.equal(new Set(made).size, made.length);
  t.ok(made.every(isDecisionId));
});

t.test('malformed ids are refused', async (t) => {
  const malformed = ['', 'x', '../../metrics', `${'0'.repeat(25)}-`, '0'.repeat(27), 'I'.repeat(26)];
  for (const text of malformed) t.notOk(isDecisionId(text), text);
});
