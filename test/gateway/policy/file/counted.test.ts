/** What the message of a reload says about counters agrees with the names of the counters. */
import t from 'tap';
import { countersOf } from '#gateway/policy/counter.ts';
import { changesOf } from '#gateway/policy/file/counted.ts';
import { loadPolicies } from '#gateway/policy/file/load.ts';
import type { PolicySet } from '#gateway/policy/policy-set.ts';
import { policyFile } from '#test/support/gateway.ts';

const load = (row: string): PolicySet => loadPolicies(policyFile(row), 'p.yaml');
const base = 'name: a, route: GET /a, identifier: ip';
const before = load(`${base}, limit: 5, window: 1m`);

t.test('names each key that counters use, and whether they start from zero', async (t) => {
  const cases = [
    ['limit: 6, window: 1m', 'limit', false],
    ['limit: 5, window: 2m', 'window', true],
    ['limit: 5, window: 1m, algorithm: sliding-window', 'algorithm', true],
    ['limit: 5, window: day', 'window and algorithm', true],
    ['concurrency: 5', 'window and algorithm', true],
    ['limit: 6, window: 1m, algorithm: token-bucket, burst: 9', 'limit and algorithm and burst', true],
    ['limit: 5, window: 1m, bucket: b', 'bucket', true],
    ['limit: 5, window: 1m, overrides: [{ for: { address: 192.0.2.1 }, limit: 9 }]', 'overrides', false],
    ['limit: 5, window: 1m, count: failure', 'count', false],
    ['limit: 5, window: 1m, distinct: path', 'distinct', true],
    ['limit: 5, window: 1m, mode: shadow', 'mode', false],
    ['limit: 5, window: 1m, rollout: 10%', 'rollout', false],
    ['limit: 5, window: 1m, ban: { after: 5, within: 1m, for: 1h }', 'ban', false],
  ] as const;
  for (const [more, keys, isNew] of cases) {
    const after = load(`${base}, ${more}`);
    const end = isNew ? 'start from zero' : 'keep what they have counted';
    t.strictSame(changesOf(before, after), [`a has another ${keys}: its counters ${end}`], more);
    const names = (set: PolicySet) => countersOf(set).map(({ keySuffix }) => keySuffix);
    t.equal(names(before).join() !== names(after).join(), isNew, `${more}: the counters in the store`);
  }
});

t.test('a policy that counts other clients starts from zero, unless both count addresses', async (t) => {
  const everyone = load('name: a, route: GET /a, identifier: everyone, limit: 5, window: 1m');
  t.strictSame(changesOf(before, everyone), ['a has another identifier: its counters start from zero']);
});

t.test('values of another part of the request are added to those of the first', async (t) => {
  const [paths, searches] = ['path', '{ query: q }'].map((what) =>
    load(`${base}, limit: 5, window: 1m, distinct: ${what}`),
  );
  if (paths === undefined || searches === undefined) throw new Error('there are two');
  t.strictSame(changesOf(paths, searches), [
    'a has another distinct: its counters keep what they have counted',
  ]);
});

t.test('says nothing of other keys and other policies', async (t) => {
  t.strictSame(changesOf(before, before), []);
  t.strictSame(changesOf(before, load(`${base.replace('/a', '/b')}, limit: 5, window: 1m`)), []);
  t.strictSame(changesOf(before, load(`${base.replace('name: a', 'name: b')}, limit: 6, window: 1m`)), []);
});

t.test('a long list ends with the number of the others', async (t) => {
  const rows = (limit: number): PolicySet =>
    loadPolicies(
      policyFile(
        ...Array.from(
          { length: 25 },
          (_, i) => `name: p${i}, route: GET /${i}, identifier: ip, limit: ${limit}, window: 1m`,
        ),
      ),
      'p.yaml',
    );
  const changes = changesOf(rows(1), rows(2));
  t.equal(changes.length, 21);
  t.equal(changes.at(-1), '5 more');
});
