/** Tests the spans that a collector gets, and the trace headers that the application gets. */
import { once } from 'node:events';
import { request } from 'node:http';
import t, { type Test } from 'tap';
import { policyFile, startTestGateway, startUpstream, type TestGateway } from '#test/support/gateway.ts';
import { type CollectedSpan, type Collector, startCollector } from '#test/support/otlp.ts';
import { startRedis } from '#test/support/redis.ts';
import { until } from '#test/support/until.ts';

const POLICIES = policyFile(
  'name: one, route: "GET,POST /one/{id}/*", identifier: ip, limit: 1, window: 366d',
  'name: many, route: "* /one/*", identifier: ip, limit: 100, window: 366d',
  'name: strict, route: GET /strict, identifier: ip, limit: 1, window: 366d, onStoreFailure: deny',
);
const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736';
const PARENT = '00f067aa0ba902b7';

interface Traced extends TestGateway {
  readonly collector: Collector;
  /** The header sections that the application got, by lower-case name. */
  readonly seen: readonly Readonly<Record<string, string>>[];
}

async function start(t: Test, env: Record<string, string> = {}, clock?: () => number): Promise<Traced> {
  const collector = await startCollector(t);
  const seen: Record<string, string>[] = [];
  const upstream = await startUpstream(t, (req, res) => {
    const headers = Object.entries(req.headers).map(([name, value]) => [name, String(value)]);
    seen.push({ ...Object.fromEntries(headers), ':path': req.url });
    if (req.url === '/never') return;
    if (req.url === '/broken') req.socket.destroy();
    else res.writeHead(req.url === '/error' ? 500 : 200).end('ok');
  });
  const gateway = await startTestGateway(t, {
    upstream,
    policies: POLICIES,
    ...(clock === undefined ? {} : { clock }),
    env: { OTEL_EXPORTER_OTLP_ENDPOINT: collector.origin, OTEL_BSP_SCHEDULE_DELAY: '10', ...env },
  });
  return { ...gateway, collector, seen };
}

const get = async (url: string, headers: Record<string, string> = {}): Promise<Response> => {
  const reply = await fetch(url, { headers });
  await reply.text();
  return reply;
};

/** The spans of one trace by their names. */
function byName(spans: readonly CollectedSpan[]): Record<string, CollectedSpan> {
  return Object.fromEntries(spans.map((span) => [span.kind === 'server' ? 'server' : span.name, span]));
}

t.test('without a collector the trace headers pass unchanged', async (t) => {
  const { origin, seen, gateway } = await start(t, { OTEL_EXPORTER_OTLP_ENDPOINT: '' });
  const headers = { traceparent: `00-${TRACE}-${PARENT}-01`, tracestate: 'a=1,b=2' };
  await get(`${origin}/free`, headers);
  await get(`${origin}/free`);
  t.match(seen[0], headers);
  t.notOk('traceparent' in (seen[1] ?? {}));
  t.notOk(gateway.samples().some(({ name }) => name.startsWith('floodgate_spans')));
});

t.test('an admitted request: its span, the wait for the store, the application', async (t) => {
  const redis = await startRedis(t);
  const traced = await start(t, { GATEWAY_REDIS_URL: redis.url });
  await get(`${traced.origin}/one/7/../7/a?secret=1`, { 'x-api-key': 'secret' });
  const spans = await traced.collector.spansOf(3);
  const { server, spend, GET } = byName(spans);
  t.match(server, {
    name: 'GET /one/{id}/*',
    parentId: '',
    isError: false,
    resource: { 'service.name': 'floodgate' },
    attributes: {
      'http.request.method': 'GET',
      'http.route': '/one/{id}/*',
      'http.response.status_code': 200,
      'url.path': '/one/7/a',
      'url.scheme': 'http',
      'floodgate.decision': 'allow',
      'floodgate.policy': 'one',
      'floodgate.policies': ['one', 'many'],
    },
  });
  t.match(spend, {
    kind: 'client',
    isError: false,
    parentId: server?.spanId,
    attributes: { 'db.system.name': 'redis' },
  });
  t.match(GET, {
    kind: 'client',
    parentId: server?.spanId,
    events: ['reply begun'],
    attributes: {
      'http.request.method': 'GET',
      'http.response.status_code': 200,
      'server.address': '127.0.0.1',
    },
  });
  t.equal(new Set(spans.map(({ traceId }) => traceId)).size, 1, 'all spans have one trace id');
  t.equal(
    traced.seen[0]?.traceparent,
    `00-${server?.traceId}-${GET?.spanId}-01`,
    'the application gets the span of its call as parent',
  );
  const order = [server?.startMs, spend?.startMs, spend?.endMs, GET?.startMs, GET?.endMs, server?.endMs];
  t.strictSame(
    order,
    order.toSorted((a, b) => Number(a) - Number(b)),
    'each span is inside its parent',
  );
  t.notMatch(JSON.stringify(spans), /secret/, 'no span has a query or a credential');
});

t.test('denied, uncovered, malformed and failed requests have spans with their result', async (t) => {
  const traced = await start(t);
  const { origin, collector } = traced;
  await get(`${origin}/one/1/a`);
  await collector.spansOf(2);
  const denied = await get(`${origin}/one/1/a`);
  t.match((await collector.spansOf(3))[2], {
    name: 'GET /one/{id}/*',
    isError: false,
    attributes: {
      'http.response.status_code': 429,
      'floodgate.decision': 'deny',
      'floodgate.decision.id': denied.headers.get('x-gateway-decision'),
      'floodgate.policy': 'one',
    },
  });
  await get(`${origin}/free`);
  const uncovered = byName((await collector.spansOf(5)).slice(3));
  t.match(uncovered.server, { name: 'GET', attributes: { 'floodgate.decision': 'uncovered' } });
  t.notOk('http.route' in (uncovered.server?.attributes ?? {}));

  await get(`${origin}/a%00b`);
  t.match((await collector.spansOf(6))[5], {
    name: 'GET',
    attributes: { 'floodgate.decision': 'malformed', 'http.response.status_code': 400 },
  });
  await get(`${origin}/error`);
  const failed = byName((await collector.spansOf(8)).slice(6));
  t.match(failed.server, { isError: true, attributes: { 'error.type': '500' } });
  t.match(failed.GET, { isError: true, events: ['reply begun'] });

  t.equal((await get(`${origin}/broken`)).status, 502);
  const broken = byName((await collector.spansOf(10)).slice(8));
  t.match(broken.server, { isError: true, attributes: { 'http.response.status_code': 502 } });
  t.match(broken.GET, { isError: true, events: [], attributes: { 'error.type': '502' } });
  t.notOk('http.response.status_code' in (broken.GET?.attributes ?? {}), 'the application sent no status');

  const abandoned = request(`${origin}/never`).on('error', () => undefined);
  abandoned.end();
  await until(() => traced.seen.at(-1)?.[':path'] === '/never');
  abandoned.destroy();
  const gone = byName((await collector.spansOf(12)).slice(10));
  t.match(gone.server, { isError: true, attributes: { 'error.type': 'cut' } });
  t.notOk('http.response.status_code' in (gone.server?.attributes ?? {}));
});

t.test('a store that is down: the span has the error', async (t) => {
  const redis = await startRedis(t);
  const traced = await start(t, { GATEWAY_REDIS_URL: `${redis.url}?timeout_ms=50` });
  redis.freeze();
  t.teardown(() => redis.thaw());
  t.equal((await get(`${traced.origin}/strict`)).status, 503);
  const { server, spend } = byName(await traced.collector.spansOf(1));
  t.match(server, {
    isError: true,
    attributes: { 'floodgate.decision': 'unavailable', 'http.response.status_code': 503 },
  });
  if (spend !== undefined) t.match(spend, { isError: true, parentId: server?.spanId });
});

t.test('continues the trace of the request', async (t) => {
  const { origin, collector, seen } = await start(t);
  await get(`${origin}/free`, { traceparent: `00-${TRACE}-${PARENT}-01`, tracestate: 'a=1,b=2' });
  const { server, GET } = byName(await collector.spansOf(2));
  t.match(server, { traceId: TRACE, parentId: PARENT, traceState: 'a=1,b=2' });
  t.match(seen[0], { traceparent: `00-${TRACE}-${GET?.spanId}-01`, tracestate: 'a=1,b=2' });
});

t.test('an invalid traceparent begins a new trace, without the state of the old one', async (t) => {
  const { origin, port, collector, seen } = await start(t);
  const bad = [
    'nonsense',
    `00-${'0'.repeat(32)}-${PARENT}-01`,
    `00-${TRACE}-${'0'.repeat(16)}-01`,
    `ff-${TRACE}-${PARENT}-01`,
    `00-${TRACE.toUpperCase()}-${PARENT}-01`,
    `00-${TRACE}-${PARENT}-01-more`,
  ];
  for (const traceparent of bad) await get(`${origin}/free`, { traceparent, tracestate: 'a=1' });
  // A request with two traceparent fields has no valid one.
  const twice = request({
    port,
    path: '/free',
    headers: { host: 'a', traceparent: [`00-${TRACE}-${PARENT}-01`, `00-${TRACE}-${PARENT}-01`] },
  }).end();
  const [reply] = await once(twice, 'response');
  reply.resume();
  const spans = await collector.spansOf(2 * (bad.length + 1));
  const servers = spans.filter(({ kind }) => kind === 'server');
  t.equal(servers.length, bad.length + 1);
  for (const { traceId, parentId } of servers) {
    t.not(traceId, TRACE);
    t.equal(parentId, '');
  }
  for (const { traceparent, tracestate } of seen) {
    t.match(traceparent, /^00-[0-9a-f]{32}-[0-9a-f]{16}-01$/);
    t.equal(tracestate, undefined);
  }
});

t.test('each sampler records the traces that it should', async (t) => {
  const cases: readonly [env: Record<string, string>, flags: string | null, recorded: boolean][] = [
    [{}, null, true],
    [{}, '00', false],
    [{}, '01', true],
    [{ OTEL_TRACES_SAMPLER: 'always_off' }, '01', false],
    [{ OTEL_TRACES_SAMPLER: 'always_on' }, '00', true],
    [{ OTEL_TRACES_SAMPLER: 'parentbased_always_off' }, null, false],
    [{ OTEL_TRACES_SAMPLER: 'parentbased_always_off' }, '01', true],
    [{ OTEL_TRACES_SAMPLER: 'traceidratio', OTEL_TRACES_SAMPLER_ARG: '0' }, '01', false],
    [{ OTEL_TRACES_SAMPLER: 'parentbased_traceidratio', OTEL_TRACES_SAMPLER_ARG: '0' }, '01', true],
    [{ OTEL_TRACES_SAMPLER: 'parentbased_traceidratio', OTEL_TRACES_SAMPLER_ARG: '0' }, null, false],
    [{ OTEL_TRACES_SAMPLER: 'traceidratio', OTEL_TRACES_SAMPLER_ARG: '1' }, null, true],
  ];
  for (const [env, flags, recorded] of cases) {
    const traced = await start(t, env);
    await get(
      `${traced.origin}/free`,
      flags === null ? {} : { traceparent: `00-${TRACE}-${PARENT}-${flags}` },
    );
    const told = JSON.stringify([env, flags]);
    const trace = flags === null ? '[0-9a-f]{32}' : TRACE;
    t.match(
      traced.seen[0]?.traceparent,
      new RegExp(`^00-${trace}-(?!${PARENT})[0-9a-f]{16}-0${Number(recorded)}$`),
      told,
    );
    await traced.gateway.close();
    t.equal(traced.collector.spans.length, recorded ? 2 : 0, told);
  }
});

t.test('a sampler with a ratio records a part of the requests', async (t) => {
  const traced = await start(t, { OTEL_TRACES_SAMPLER: 'traceidratio', OTEL_TRACES_SAMPLER_ARG: '0.5' });
  const flags = (): string[] => traced.seen.map(({ traceparent }) => traceparent?.slice(-2) ?? '');
  // Both are equally likely, so a hundred of one kind do not happen by chance.
  for (let i = 0; i < 100; i++) await get(`${traced.origin}/free`);
  t.ok(flags().includes('01') && flags().includes('00'));
});

t.test('records traces that clients ask for, up to a number of requests a second', async (t) => {
  let now = 1_800_000_000_000;
  const traced = await start(t, { GATEWAY_TRACES_PER_SECOND: '2' }, () => now);
  const ask = () => get(`${traced.origin}/free`, { traceparent: `00-${TRACE}-${PARENT}-01` });
  for (let i = 0; i < 5; i++) await ask();
  t.strictSame(
    traced.seen.map(({ traceparent }) => traceparent?.slice(-2)),
    ['01', '01', '00', '00', '00'],
  );
  t.equal(traced.sample('floodgate_traces_total', { result: 'recorded' }), 2);
  t.equal(traced.sample('floodgate_traces_total', { result: 'over_limit' }), 3);
  now += 1000;
  await ask();
  t.equal(traced.seen[5]?.traceparent?.slice(-2), '01');
});

t.test('a WebSocket is one span from beginning to end', async (t) => {
  const collector = await startCollector(t);
  const upstream = await startUpstream(t);
  upstream.server.on('upgrade', (_req, socket) => {
    socket.on('error', () => undefined);
    socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n');
    socket.on('data', () => socket.end());
  });
  const gateway = await startTestGateway(t, {
    upstream,
    policies: POLICIES,
    env: { OTEL_EXPORTER_OTLP_ENDPOINT: collector.origin, OTEL_BSP_SCHEDULE_DELAY: '10' },
  });
  const client = request({
    port: gateway.port,
    path: '/socket',
    headers: { connection: 'Upgrade', upgrade: 'websocket' },
  });
  client.end();
  const [, socket] = await once(client, 'upgrade');
  t.equal(collector.spans.length, 0);
  socket.end('bye');
  const { server } = byName(await collector.spansOf(2));
  t.match(server, { isError: false, attributes: { 'http.response.status_code': 101 } });
});
