/** Tests ids of refusals: they say what happened to those who know the salt, and nothing to others. */

import t from 'tap';
import {
  DECISION_ID_LENGTH,
  DecisionIds,
  isDecisionId,
  readDecisionId,
} from '#gateway/refusals/decision-ids.ts';
import { fc } from '#test/support/fast-check.ts';

const NOW = 1_800_000_000_500;
const deny = { decision: 'deny', policy: 'one', isUnproven: false } as const;
const SEED = { seed: 26, numRuns: 200 };

t.test('an id says what was refused, when and where', async (t) => {
  const kind = fc.constantFrom('deny' as const, 'unavailable', 'listed', 'banned', 'busy');
  const word = fc.string({ minLength: 1, maxLength: 50 });
  const at = fc.integer({ min: 0, max: 2 ** 32 * 1000 - 1 });
  const reason = fc.record({ decision: kind, policy: word, isUnproven: fc.boolean() });
  fc.assert(
    fc.property(reason, word, word, word, at, (reason, version, replica, salt, at) => {
      const id = new DecisionIds(salt, replica).next(reason, version, at);
      const read = readDecisionId(id, salt);
      t.match(read, {
        at: at - (at % 1000),
        decision: reason.decision,
        isUnproven: reason.isUnproven,
      });
      t.ok(read?.isOfPolicy(reason.policy) && read.isOfVersion(version) && read.isOfReplica(replica));
      t.notOk(read?.isOfPolicy(`${reason.policy}.`));
      t.equal(readDecisionId(id, `${salt}.`), null, 'another salt');
    }),
    SEED,
  );
});

t.test('ids differ and have one length', async (t) => {
  const [ids, others] = [new DecisionIds('salt', 'a'), new DecisionIds('salt', 'b')];
  const made: string[] = [];
  for (let i = 0; i < 5000; i++) {
    const now = NOW + Math.floor(i / 1000) * 1000;
    const policy = `p${i % 3}`;
    made.push(ids.next({ ...deny, policy }, 'v', now), others.next({ ...deny, policy }, 'v', now));
  }
  t.equal(new Set(made).size, made.length);
  t.ok(made.every((id) => id.length === DECISION_ID_LENGTH && isDecisionId(id)));
  const ofPolicy = (i: number) => readDecisionId(made[2 * i] ?? '', 'salt');
  t.ok(ofPolicy(4)?.isOfPolicy('p1'));
  t.equal(ofPolicy(4999)?.at, NOW + 4000 - 500);
});

t.test('a reload and another salt apply within the second', async (t) => {
  const ids = new DecisionIds('salt', 'a');
  for (let i = 0; i < 10; i++) ids.next(deny, 'old', NOW);
  t.equal(readDecisionId(ids.next(deny, 'new', NOW), 'salt')?.isOfVersion('new'), true);
  ids.useSalt('shared');
  t.ok(readDecisionId(ids.next(deny, 'new', NOW), 'shared'));
  ids.useSalt('shared');
  t.ok(readDecisionId(ids.next(deny, 'new', NOW), 'shared'));
});

t.test('made-up and mistyped ids are recognized', async (t) => {
  const ids = new DecisionIds('salt', 'a');
  const id = ids.next(deny, 'v', NOW);
  let accepted = 0;
  for (let i = 0; i < DECISION_ID_LENGTH - 1; i++) {
    const other = `${id.slice(0, i)}${id[i] === '0' ? '1' : '0'}${id.slice(i + 1)}`;
    if (readDecisionId(other, 'salt') !== null) accepted++;
  }
  t.equal(accepted, 0);
});

t.test('refuses malformed ids', async (t) => {
  const malformed = ['', 'x', '../../metrics', `${'0'.repeat(25)}-`, '0'.repeat(27), 'I'.repeat(26)];
  for (const text of malformed) t.notOk(isDecisionId(text), text);
});
