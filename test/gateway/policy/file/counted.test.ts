/** Which edits of a policy begin new counters in the store, and which keep those in use. */
import t from 'tap';
import { countersOf } from '#gateway/policy/counter.ts';
import { loadPolicies } from '#gateway/policy/file/load.ts';
import { policyFile } from '#test/support/gateway.ts';

const base = 'name: a, route: GET /a, identifier: ip';
const names = (more: string): string =>
  countersOf(loadPolicies(policyFile(`${base}, ${more}`), 'p.yaml'))
    .map(({ keySuffix }) => keySuffix)
    .join();

t.test('another window, algorithm, bucket or kind of count starts from zero', async (t) => {
  const before = names('limit: 5, window: 1m');
  const cases = [
    ['limit: 6, window: 1m', false],
    ['limit: 5, window: 2m', true],
    ['limit: 5, window: 1m, algorithm: sliding-window', true],
    ['limit: 5, window: day', true],
    ['concurrency: 5', true],
    ['limit: 6, window: 1m, algorithm: token-bucket, burst: 9', true],
    ['limit: 5, window: 1m, bucket: b', true],
    ['limit: 5, window: 1m, overrides: [{ for: { address: 192.0.2.1 }, limit: 9 }]', false],
    ['limit: 5, window: 1m, count: failure', false],
    ['limit: 5, window: 1m, distinct: path', true],
    ['limit: 5, window: 1m, mode: shadow', false],
    ['limit: 5, window: 1m, rollout: 10%', false],
    ['limit: 5, window: 1m, ban: { after: 5, within: 1m, for: 1h }', false],
  ] as const;
  for (const [more, isNew] of cases) t.equal(names(more) !== before, isNew, more);
});
