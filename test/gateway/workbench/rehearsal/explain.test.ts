/** Tests `explain` with counters that other requests have used. */
import t from 'tap';
import { loadPolicies } from '#gateway/policy/load.ts';
import { explain } from '#gateway/workbench/rehearsal/explain.ts';
import { Rehearsal, type RehearsedRequest } from '#gateway/workbench/rehearsal/rehearsal.ts';
import { testClock } from '#test/support/clock.ts';

t.test('an unproven key waits while others have used up the limit of its address', async (t) => {
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

t.test('explains a cost that replies report', async (t) => {
  const set = loadPolicies(
    `version: 1
identifiers: { ip: { source: client-address } }
policies: [{ name: ai, route: POST /ai, identifier: ip, limit: 5000, window: 1h, cost: { replyHeader: X-Tokens, reserve: 500 } }]
`,
    'p.yaml',
  );
  const rehearsal = new Rehearsal(set, { clock: testClock(Date.UTC(2026, 0, 1)).now });
  const request = {
    method: 'POST',
    target: '/ai',
    rawHeaders: [],
    socket: { remoteAddress: '192.0.2.1' },
  };
  const asked = rehearsal.ask(request);
  if (asked.kind === 'allow') rehearsal.answered(asked, 200, ['x-tokens', '1200']);
  t.match(await explain(set, rehearsal, request), {
    decision: 'allow',
    policies: [
      {
        used: 1200,
        cost: 500,
        reason: /, it reserves 500 until the reply reports its units in x-tokens$/,
      },
    ],
  });
});
