/** Tests `floodgate top`, and that the admin process follows the policy file. */
import { writeFileSync } from 'node:fs';
import t from 'tap';
import { groupSamples } from '#gateway/observe/core-samples.ts';
import { families } from '#gateway/observe/metrics/exposition.ts';
import { applicationAway, newcomersOf } from '#gateway/operate/admin/top.ts';
import { counter, gauge } from '#gateway/part/sample.ts';
import type { ProcessReport } from '#gateway/process/supervisor.ts';
import { startTestAdmin } from '#test/support/admin.ts';
import { floodgateCommand } from '#test/support/cli.ts';
import { policyFile, startTestGateway } from '#test/support/gateway.ts';
import { eventually } from '#test/support/gateway-process.ts';
import { LONG_POLICIES, startOperator } from '#test/support/operator.ts';
import { startRedis } from '#test/support/redis.ts';
import { until } from '#test/support/until.ts';
import { insideLongWindow } from '#test/support/window.ts';

t.test('one snapshot: rates, totals, the store, and the clients denied most', async (t) => {
  const redis = await startRedis(t);
  const operator = await startOperator(t, { GATEWAY_REDIS_URL: redis.url, GATEWAY_WORKERS: '2' });
  const { ask, send } = operator;
  await send(3);
  await send(4);
  const { code, document } = await ask('top');
  t.equal(code, 0);
  t.match(document, {
    processes: 2,
    store: { kind: 'redis', available: true, replicas: 2 },
    requests: { allowed: 3, denied: 4 },
    policies: [{ policy: 'items', allowed: 3, denied: 4, allowedPerSecond: Number, deniedPerSecond: Number }],
    requestsPerSecond: Number,
  });
  const { document: inspected } = await ask('inspect', '127.0.0.1');
  t.match(document.limited, [{ identity: inspected.identity, denied: 4, policy: 'items', lastAt: /Z$/ }]);

  // Another gateway with the same store tells of it, and sees it.
  const other = await startOperator(t, { GATEWAY_REDIS_URL: redis.url });
  await other.send(2);
  await other.ask('top');
  await eventually(
    'the denials of both gateways',
    () => operator.ask('top'),
    ({ document: { limited, isLimitedOfAll } }) =>
      isLimitedOfAll === true && (limited as { denied: number }[])[0]?.denied === 6,
  );

  writeFileSync(operator.policyFile, `${LONG_POLICIES.replace('limit: 3', 'limit: 5')}\n`);
  await until(
    async () =>
      ((await ask('explain', 'GET /items')).document.policies as { limit: number }[])[0]?.limit === 5,
    'the edited file',
  );
});

t.test('regulars and newcomers, and from when their limit acts', async (t) => {
  await insideLongWindow();
  const policies = policyFile(
    'name: site, route: "GET /*", identifier: ip, limit: 20, window: 366d, newcomers: { limit: 2, window: 366d }',
  );
  const gateway = await startTestGateway(t, { policies });
  const admin = await startTestAdmin(t, gateway);
  await gateway.logged(/deny nobody yet/);
  const policy = 'site.newcomers';
  const actsAt = 1000 * gateway.sample('floodgate_newcomers_act_from_timestamp_seconds', { policy });
  const actsFrom = new Date(Math.round(actsAt)).toISOString();
  await gateway.logged(new RegExp(`"actsFrom":"${actsFrom}"`));
  for (let i = 0; i < 3; i++) await (await fetch(gateway.origin)).arrayBuffer();
  const ask = async (...args: string[]): Promise<string> =>
    (await floodgateCommand(['top', '--gateway', admin, ...args])).stdout;
  t.match(JSON.parse(await ask('--json')).newcomers, {
    ...{
      regulars: 0,
      newcomers: 3,
      denied: 0,
      // The share of a client is one request.
      shadowDenied: 2,
      waiting: 0,
      overloaded: 0,
      acts: false,
      actsFrom,
    },
  });
  const shown = `overloaded 0; the limit of newcomers acts from ${actsFrom}\n`;
  t.ok((await ask()).includes(shown), 'the line for people');
  const { stdout } = await floodgateCommand(['inspect', '--gateway', admin, '127.0.0.1']);
  t.match(stdout, /: not banned, a newcomer \(here on 1 day, first on \d{4}-\d\d-\d\d\)\n/);
});

t.test('newcomers that are denied, once the limit acts', async (t) => {
  const processes = [0, 1].map((denied) =>
    families([
      gauge('floodgate_newcomers_act_from_timestamp_seconds', '', 0, { policy: 'site.newcomers' }),
      counter('floodgate_visitors_total', '', 5, { client: 'regular' }),
      counter('floodgate_newcomers_denied_total', '', denied, { mode: 'enforce' }),
      counter('floodgate_policy_decisions_total', '', 9, { policy: 'site', decision: 'denied' }),
    ]),
  );
  const none = { newcomers: 0, shadowDenied: 0, waiting: 0, overloaded: 0, acts: true, actsFrom: null };
  const acting = { ...none, regulars: 10, denied: 1 };
  t.same(newcomersOf(processes), acting, 'of all processes');
  t.equal(newcomersOf([families(groupSamples({ policies: [] }))]), null, 'a file without newcomers');
});

t.test(
  'an outage of the application is over if another process knows, and the last one has been silent',
  async (t) => {
    const report = (upstreamOutage: ProcessReport['upstreamOutage']): ProcessReport => ({
      ...{ storeAvailable: true, storeOutage: null, upstreamOutage, replicas: 1, limited: [] },
      matches: { verdict: 'open', paths: [], otherHosts: [], hasForeignPages: false },
    });
    const lasts = { from: 1000, to: null, failedAt: 5000, reason: 'nothing listens there' };
    const over = { ...lasts, to: 9000 };
    const away = { since: new Date(1000).toISOString(), reason: lasts.reason };
    for (const [outages, now, expected] of [
      [[null], 6000, null],
      [[lasts, null], 6000, away],
      [[lasts, null], 65_001, null],
      // Nobody knows better.
      [[lasts], 900_000, away],
      [[over, lasts], 9500, away],
    ] as const)
      t.strictSame(applicationAway(outages.map(report), now), expected, `${outages.length} at ${now}`);
  },
);
