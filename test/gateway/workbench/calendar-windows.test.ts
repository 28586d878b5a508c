/** Calendar windows in the tests of a policy file, in `explain`, `why` and `replay`. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { loadPolicies } from '#gateway/policy/file/load.ts';
import { textOf } from '#gateway/refusals/explain.ts';
import { explain } from '#gateway/workbench/rehearsal/explain.ts';
import { runTests } from '#gateway/workbench/rehearsal/policy-tests.ts';
import { Rehearsal } from '#gateway/workbench/rehearsal/rehearsal.ts';
import { requestOf } from '#gateway/workbench/rehearsal/request-text.ts';
import { LogFiles } from '#gateway/workbench/replay/log-files.ts';
import { replay } from '#gateway/workbench/replay/replay.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';

const fileOf = (window: string, timezone: string | null = 'Europe/Berlin', more = ''): string =>
  `version: 1
${timezone === null ? '' : `timezone: ${timezone}`}
identifiers: { ip: { source: client-address } }
policies: [{ name: reports, route: GET /reports, identifier: ip, limit: 2, window: ${window} }]
${more}`;

t.test('policy tests set the time, and show when the window ends', async (t) => {
  const testAt = (at: string, expect: string): string =>
    `  - { name: "${at}", request: GET /reports, at: "${at}", times: 3, expect: { allowed: 2, headers: { ${expect} } } }\n`;
  const month = `tests:
${testAt('2026-11-30T22:59:00Z', 'Retry-After: 60, RateLimit: \'"reports";r=0;t=60\', RateLimit-Policy: \'"reports";q=2;w=2678400\'')}
${testAt('2026-11-30T23:00:00Z', `Retry-After: ${31 * 86_400}`)}
${testAt('2028-01-31T23:00:00Z', `Retry-After: ${29 * 86_400}`)}
  - { name: the time that a test has by itself, request: GET /reports, times: 3, expect: { allowed: 2 } }
`;
  t.strictSame(runTests(loadPolicies(fileOf('month', 'Europe/Berlin', month), 'p.yaml')), []);
  const day = `tests:
${testAt('2026-03-28T23:00:00Z', `Retry-After: ${23 * 3600}`)}
${testAt('2026-10-24T22:00:00Z', `Retry-After: ${25 * 3600}`)}
  - { name: the first date there is, request: GET /reports, at: "-271821-04-20T00:00:00Z", expect: { status: 200 } }
  - { name: the last one, request: GET /reports, at: "+275760-09-13T00:00:00Z", expect: { status: 200 } }
`;
  t.strictSame(runTests(loadPolicies(fileOf('day', 'Europe/Berlin', day), 'p.yaml')), []);
  const week = `tests:
${testAt('2026-11-22T23:00:00Z', `Retry-After: ${3600}`)}
${testAt('2026-11-23T00:00:00Z', `Retry-After: ${7 * 86_400}`)}
`;
  t.strictSame(runTests(loadPolicies(fileOf('week', null, week), 'p.yaml')), [], 'in UTC by default');
});

t.test('explain and why name the window', async (t) => {
  const set = loadPolicies(fileOf('month'), 'p.yaml');
  const rehearsal = new Rehearsal(set, { clock: () => Date.UTC(2026, 10, 30) });
  const request = requestOf('GET /reports', [], '192.0.2.1');
  for (let i = 0; i < 2; i++) rehearsal.ask(request);
  t.match(explain(set, rehearsal, request), {
    decision: 'deny',
    reason: 'reports (line 4) allows 2 in a calendar month (Europe/Berlin)',
    headers: { 'Retry-After': String(23 * 3600) },
    policies: [{ algorithm: 'calendar-window', used: 2 }],
  });
  const { reasons } = textOf({
    id: 'a',
    at: '2026-11-30T00:00:00.000Z',
    decision: 'deny',
    method: 'GET',
    path: '/reports',
    policy: 'reports',
    line: 4,
    file: 'p.yaml',
    policyVersion: '1',
    violated: ['reports'],
    limit: 2,
    used: 2,
    cost: 1,
    windowSeconds: 31 * 86_400,
    algorithm: 'calendar-window',
    endsAt: '2026-11-30T23:00:00.000Z',
    identity: 'digest',
    identifier: 'ip',
    isUnproven: false,
    addressFrom: 'the connection',
    decidedBy: 'store',
    fromMemory: false,
    replica: 'one',
  });
  t.strictSame(reasons, [
    'The limit was reached: policy reports allows 2 in a calendar month, and 2 were used.',
  ]);
});

t.test('replay counts by the days of the zone across a clock change', async (t) => {
  const log = join(temporaryFolder(t), 'access.log');
  const line = (day: number, time: string): string =>
    `192.0.2.1 - - [${day}/Mar/2026:${time} +0000] "GET /reports HTTP/1.1" 200 2 "-" "a"\n`;
  const times = [
    // Saturday in Berlin ends at 23:00 UTC, Sunday at 22:00.
    ...['22:59:57', '22:59:58', '22:59:59', '23:00:00', '23:00:01', '23:00:02'].map((time) => line(28, time)),
    ...['21:59:59', '22:00:00', '22:00:01', '22:00:02'].map((time) => line(29, time)),
  ];
  writeFileSync(log, times.join(''));
  const run = (window: string, timezone: string) =>
    replay({
      logs: new LogFiles([{ name: 'access.log', input: log }], null, new Map()),
      set: loadPolicies(fileOf(window, timezone), 'p.yaml'),
      against: null,
      trust: { kind: 'none' },
      salt: 'salt',
      withRoutes: false,
    });
  const berlin = await run('day', 'Europe/Berlin');
  t.match(berlin, { requests: 10, allowed: 6, denied: 4 });
  t.match(berlin.policies, [{ algorithm: 'calendar-window', firstDeniedAt: '2026-03-28T22:59:59.000Z' }]);
  t.match(await run('day', 'UTC'), { allowed: 4, denied: 6 });
  t.match(await run('week', 'Europe/Berlin'), { allowed: 4, denied: 6 });
  t.match(await run('month', 'Europe/Berlin'), { allowed: 2, denied: 8 });
});
