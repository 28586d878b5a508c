/** The traffic that the page shows, compared with the access log, as a second source. */
import { request } from 'node:http';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { startTestAdmin } from '#test/support/admin.ts';
import { type Traffic, trafficOf } from '#test/support/admin-traffic.ts';
import { testClock } from '#test/support/clock.ts';
import { policyFile, startTestGateway } from '#test/support/gateway.ts';
import { jsonLines } from '#test/support/json.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';
import { until } from '#test/support/until.ts';

const ROWS = [
  'name: few, route: GET /few, identifier: ip, limit: 7, window: 366d',
  'name: shadowed, route: GET /shadowed, identifier: ip, limit: 2, window: 366d, mode: shadow',
  'name: form, route: POST /form, identifier: { body: email }, limit: 100, window: 366d',
];

interface Line {
  readonly time: string;
  readonly decision: string;
  readonly policies: readonly string[];
}

const sum = (series: readonly number[] = []): number => series.reduce((all, one) => all + one, 0);
const linesOf = (file: string): Line[] => jsonLines(file);

/** Counts by the start of their span in ms. A span without a request is left out. */
function bySpan(traffic: Traffic, series: readonly number[] = []): Record<string, number> {
  const spanMs = traffic.spanSeconds * 1000;
  const first = Date.parse(traffic.lastSpanAt) - (series.length - 1) * spanMs;
  const counts = series.map((count, i) => [String(first + i * spanMs), count] as const);
  return Object.fromEntries(counts.filter(([, count]) => count > 0));
}

function logged({ spanSeconds }: Traffic, lines: readonly Line[]): Record<string, number> {
  const spanMs = spanSeconds * 1000;
  const groups = Map.groupBy(lines, ({ time }) => Math.floor(Date.parse(time) / spanMs) * spanMs);
  return Object.fromEntries([...groups].map(([at, { length }]) => [String(at), length]));
}

async function start(t: Test) {
  const clock = testClock(Date.UTC(2026, 10, 22, 1, 56, 30, 400));
  const file = join(temporaryFolder(t), 'access.log');
  const gateway = await startTestGateway(t, {
    policies: policyFile(...ROWS),
    env: { GATEWAY_ACCESS_LOG: file },
    clock: clock.now,
    wallClock: clock.now,
  });
  const admin = await startTestAdmin(t, gateway, { clock: clock.now });
  const traffic = () => trafficOf(admin);
  const send = async (path: string, times: number): Promise<void> => {
    for (let i = 0; i < times; i++) await (await fetch(gateway.origin + path)).arrayBuffer();
  };
  return { clock, gateway, file, traffic, send };
}

t.test('sums are those of the access log, and spans differ by the requests in flight', async (t) => {
  const { clock, gateway, file, traffic, send } = await start(t);
  // A body that takes 25 seconds. The log has the time of its arrival, the chart that of its decision.
  const headers = { 'content-type': 'application/x-www-form-urlencoded', 'content-length': '8' };
  const slow = request({ port: gateway.port, path: '/form', method: 'POST', headers });
  t.teardown(() => slow.destroy());
  const replied = new Promise((resolve) =>
    slow.on('response', (reply) => resolve(reply.resume().statusCode)),
  );
  slow.write('ema');
  await until(() => gateway.sample('floodgate_held', { bound: 'waiting' }) === 1);
  const decidedAfter = 25_000;
  let requests = 1;
  // The first reading in each span is at its start. Others do not fit the spans.
  for (let ms = 400; ms < 90_000; ms += 100) {
    if (ms % 10_000 === 0 || ms % 7300 === 0) await traffic();
    if (ms === decidedAfter) {
      slow.end('il=a@');
      t.equal(await replied, 200);
    }
    const times = ms % 1700 === 0 ? (ms / 100) % 5 : 0;
    await send(['/few', '/shadowed', '/open'][(ms / 1700) % 3] ?? '', times);
    requests += times;
    clock.advance(100);
  }
  await until(() => linesOf(file).length === requests);
  const read = await traffic();
  const lines = linesOf(file);
  const of = (decision: string, policy?: string): readonly Line[] =>
    lines
      .filter(
        (line) => line.decision === decision && (policy === undefined || line.policies.includes(policy)),
      )
      .map((line) =>
        line.policies.includes('form')
          ? { ...line, time: new Date(Date.parse(line.time) + decidedAfter - 400).toISOString() }
          : line,
      );
  const shown = (name: string) => bySpan(read, read.series[name]);
  t.strictSame(shown('floodgate_requests_total allowed'), logged(read, of('allow')));
  t.strictSame(shown('floodgate_requests_total denied'), logged(read, of('deny')));
  t.strictSame(shown('floodgate_requests_total uncovered'), logged(read, of('uncovered')));
  t.strictSame(shown('floodgate_replies_total 2xx'), logged(read, [...of('allow'), ...of('uncovered')]));
  for (const policy of ['few', 'form']) {
    t.strictSame(
      shown(`floodgate_policy_decisions_total ${policy} allowed`),
      logged(read, of('allow', policy)),
    );
    t.strictSame(
      shown(`floodgate_policy_decisions_total ${policy} denied`),
      logged(read, of('deny', policy)),
    );
  }
  const total = (name: string) => sum(read.series[name]);
  t.equal(
    total('floodgate_policy_decisions_total shadowed shadow_denied'),
    of('allow', 'shadowed').length - 2,
  );
  t.equal(
    total('floodgate_policy_decisions_total shadowed allowed'),
    2,
    'it allows what is within its limit',
  );
  t.equal(
    sum(
      Object.keys(read.series)
        .filter((name) => name.startsWith('floodgate_requests_total '))
        .map(total),
    ),
    requests,
  );
  t.ok(Object.keys(shown('floodgate_requests_total denied')).length > 3, 'several spans have refusals');
});
