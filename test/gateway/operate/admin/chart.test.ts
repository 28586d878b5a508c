/** The traffic that the page shows, compared with the access log: each request is in the span in which it arrived. */
import { request } from 'node:http';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { startTestAdmin } from '#test/support/admin.ts';
import { testClock } from '#test/support/clock.ts';
import { policyFile, startTestGateway } from '#test/support/gateway.ts';
import { jsonLines } from '#test/support/json.ts';
import { startOperator } from '#test/support/operator.ts';
import { startRedis } from '#test/support/redis.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';
import { until } from '#test/support/until.ts';

const ROWS = [
  'name: few, route: GET /few, identifier: ip, limit: 7, window: 366d',
  'name: shadowed, route: GET /shadowed, identifier: ip, limit: 2, window: 366d, mode: shadow',
  'name: form, route: POST /form, identifier: { body: email }, limit: 100, window: 366d',
];

interface Line {
  readonly time: string;
  readonly status: number;
  readonly decision: string;
  readonly policies: readonly string[];
}

interface Traffic {
  readonly spanSeconds: number;
  readonly lastSpanAt: string;
  readonly requests: Readonly<Record<string, readonly number[]>>;
  readonly statuses: Readonly<Record<string, readonly number[]>>;
  readonly policies: readonly {
    policy: string;
    allowed?: readonly number[];
    denied?: readonly number[];
    shadowDenied?: readonly number[];
  }[];
}

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

/** Returns the first event of the stream. */
async function trafficOf(admin: string): Promise<Traffic> {
  const stop = new AbortController();
  const { body } = await fetch(`${admin}/api/live`, { signal: stop.signal });
  let text = '';
  for await (const chunk of body?.pipeThrough(new TextDecoderStream()) ?? []) {
    text += chunk;
    if (text.includes('\n\n')) break;
  }
  stop.abort();
  const [, data = 'null'] = /^event: traffic\ndata: (.*)$/m.exec(text) ?? [];
  return JSON.parse(data);
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

t.test('every span has exactly the requests of its ten seconds, whenever it is read', async (t) => {
  const { clock, gateway, file, traffic, send } = await start(t);
  // A body that takes 25 seconds. The request belongs to the second in which it arrived.
  const headers = { 'content-type': 'application/x-www-form-urlencoded', 'content-length': '8' };
  const slow = request({ port: gateway.port, path: '/form', method: 'POST', headers });
  t.teardown(() => slow.destroy());
  const replied = new Promise((resolve) =>
    slow.on('response', (reply) => resolve(reply.resume().statusCode)),
  );
  slow.write('ema');
  await until(() => gateway.sample('floodgate_held', { bound: 'waiting' }) === 1);
  // The steps, the numbers of requests and the moments of reading do not fit the spans.
  let requests = 1;
  for (let i = 0; i < 40; i++) {
    clock.advance([900, 2300, 100, 4700, 1][i % 5] ?? 0);
    await send(['/few', '/shadowed', '/open'][i % 3] ?? '', (i * 7) % 5);
    requests += (i * 7) % 5;
    if (i === 16) slow.end('il=a@');
    if (i === 16) t.equal(await replied, 200);
    if (i % 11 === 0) await traffic();
  }
  await until(() => linesOf(file).length === requests);
  clock.advance(1000);
  const read = await traffic();
  const lines = linesOf(file);
  const of = (decision: string, policy?: string): readonly Line[] =>
    lines.filter(
      (line) => line.decision === decision && (policy === undefined || line.policies.includes(policy)),
    );
  t.strictSame(bySpan(read, read.requests.allowed), logged(read, of('allow')));
  t.strictSame(bySpan(read, read.requests.denied), logged(read, of('deny')));
  t.strictSame(bySpan(read, read.requests.uncovered), logged(read, of('uncovered')));
  t.strictSame(
    bySpan(read, read.statuses['2xx']),
    logged(
      read,
      lines.filter(({ status }) => status === 200),
    ),
  );
  const [few, form, shadowed] = read.policies;
  for (const { policy, allowed, denied } of [few, form].filter((one) => one !== undefined)) {
    t.strictSame(bySpan(read, allowed), logged(read, of('allow', policy)), policy);
    t.strictSame(bySpan(read, denied), logged(read, of('deny', policy)), policy);
  }
  t.strictSame(
    read.policies.map(({ policy }) => policy),
    ['few', 'form', 'shadowed'],
  );
  const watched = Object.values(logged(read, of('allow', 'shadowed'))).reduce((all, one) => all + one, 0);
  const shadowedIn = (count: 'allowed' | 'shadowDenied'): number | undefined =>
    shadowed?.[count]?.reduce((all, one) => all + one, 0);
  t.equal(shadowedIn('shadowDenied'), watched - 2);
  t.equal(shadowedIn('allowed'), 2, 'a policy in shadow mode allows what is within its limit');
  t.ok(Object.keys(bySpan(read, read.requests.denied)).length > 3, 'several spans have refusals');
});

t.test('a second is shown when it is over', async (t) => {
  const { clock, traffic, send } = await start(t);
  await send('/open', 3);
  t.strictSame((await traffic()).requests, {});
  clock.advance(599);
  t.strictSame((await traffic()).requests, {});
  clock.advance(1);
  const read = await traffic();
  t.strictSame(Object.values(bySpan(read, read.requests.uncovered)), [3]);
});

t.test('several processes: each request is counted once', async (t) => {
  const redis = await startRedis(t);
  const env = { GATEWAY_REDIS_URL: redis.url, GATEWAY_WORKERS: '2' };
  const { admin, send } = await startOperator(t, env);
  await Promise.all([send(40), send(40), send(30, '/open')]);
  const total = (series: readonly number[] = []): number => series.reduce((all, one) => all + one, 0);
  let counted = 0;
  await until(async () => {
    const { requests } = await trafficOf(admin);
    const counts = ['allowed', 'denied', 'uncovered'].map((outcome) => total(requests[outcome]));
    counted = Math.max(counted, total(counts));
    return String(counts) === '3,77,30';
  });
  t.equal(counted, 110);
});
