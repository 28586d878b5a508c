/** Tests `explain` with counters that other requests have used. */
import t from 'tap';
import { loadPolicies } from '#gateway/policy/load.ts';
import { explain } from '#gateway/workbench/rehearsal/explain.ts';
import { Rehearsal, type RehearsedRequest } from '#gateway/workbench/rehearsal/rehearsal.ts';
import { testClock } from '#test/support/clock.ts';

t.test('a key that never worked waits while its address has spent its limit on others', async (t) => {
  for (const algorithm of ['fixed-window', 'sliding-window']) {
    const set = loadPolicies(
      `version: 1
identifiers: { key: { source: [{ header: x-api-key }] } }
policies: [{ name: keys, route: GET /items, identifier: key, limit: 5, window: 1h, algorithm: ${algorithm} }]
`,
      'p.yaml',
    );
    const rehearsal = new Rehearsal(set, {
      clock: testClock(Date.UTC(2026, 0, 1)).now,
      trust: { kind: 'none' },
      salt: 'salt',
      countersMax: 64,
      credentialsMax: 64,
    });
    const withKey = (key: string): RehearsedRequest => ({
      method: 'GET',
      target: '/items',
      rawHeaders: ['x-api-key', key],
      socket: { remoteAddress: '192.0.2.1' },
    });
    for (const key of ['one', 'two', 'three', 'four', 'five'])
      t.equal(rehearsal.ask(withKey(key)).kind, 'allow');
    const explained = await explain(set, rehearsal, withKey('six'), async () => undefined);
    t.match(explained, {
      decision: 'deny',
      status: 429,
      policies: [{ used: 0, remaining: 0, reason: /counted too \(5 of 5 used\)/ }],
    });
  }
});
