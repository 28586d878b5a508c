/** Tests tracing with a collector that is slow, down or requires a login, and at the end of the gateway. */
import { readFileSync } from 'node:fs';
import t, { type Test } from 'tap';
import { VERSION } from '#shared/version.ts';
import { createAuthority } from '#test/support/certificates.ts';
import { startTestGateway, startUpstream, type TestGateway } from '#test/support/gateway.ts';
import { environment, launch } from '#test/support/gateway-process.ts';
import { type Collector, startCollector } from '#test/support/otlp.ts';
import { freePort } from '#test/support/ports.ts';
import { until } from '#test/support/until.ts';

async function start(
  t: Test,
  collector: Pick<Collector, 'origin'>,
  env: Record<string, string>,
): Promise<TestGateway> {
  const upstream = await startUpstream(t, (_req, res) => void res.end('ok'));
  return startTestGateway(t, { upstream, env: { OTEL_EXPORTER_OTLP_ENDPOINT: collector.origin, ...env } });
}

const ask = async ({ origin }: TestGateway, times: number): Promise<void> => {
  for (let i = 0; i < times; i++) t.equal(await (await fetch(`${origin}/free`)).text(), 'ok');
};

t.test('sends batches, compressed, with the configured headers and resource', async (t) => {
  const collector = await startCollector(t);
  const gateway = await start(t, collector, {
    OTEL_EXPORTER_OTLP_HEADERS: 'authorization=Basic%20abc,x-tenant=a',
    OTEL_EXPORTER_OTLP_TRACES_HEADERS: 'x-tenant=b',
    OTEL_EXPORTER_OTLP_COMPRESSION: 'gzip',
    OTEL_SERVICE_NAME: 'edge',
    OTEL_RESOURCE_ATTRIBUTES: 'deployment.environment.name=production',
    OTEL_BSP_MAX_EXPORT_BATCH_SIZE: '4',
    OTEL_BSP_SCHEDULE_DELAY: '60000',
  });
  await ask(gateway, 4);
  const spans = await collector.spansOf(8);
  t.match(collector.requests[0], {
    path: '/v1/traces',
    headers: {
      authorization: 'Basic abc',
      'x-tenant': 'b',
      'content-encoding': 'gzip',
      'content-type': 'application/x-protobuf',
    },
  });
  t.match(spans[0]?.resource, {
    'service.name': 'edge',
    'service.version': VERSION,
    'service.instance.id': /^test:/,
    'deployment.environment.name': 'production',
    'telemetry.sdk.language': 'nodejs',
  });
  await until(() => gateway.sample('floodgate_spans_exported_total') === 8);
  t.equal(gateway.sample('floodgate_spans_dropped_total', { reason: 'export' }), 0);
});

t.test('logs a variable that the SDK refuses, and uses its default', async (t) => {
  const collector = await startCollector(t);
  const gateway = await start(t, collector, {
    OTEL_EXPORTER_OTLP_COMPRESSION: 'zstd',
    OTEL_EXPORTER_OTLP_CERTIFICATE: '/not/there.pem',
    OTEL_RESOURCE_ATTRIBUTES: 'team',
    OTEL_BSP_SCHEDULE_DELAY: '1',
  });
  const messages = gateway.log.map(({ msg }) => String(msg)).join('\n');
  t.match(messages, /OTEL_EXPORTER_OTLP_COMPRESSION is invalid, expected 'none' or 'gzip'/);
  t.match(messages, /Failed to read root certificate file/);
  t.match(messages, /Invalid format for OTEL_RESOURCE_ATTRIBUTES/);
  await ask(gateway, 1);
  await collector.spansOf(2);
  t.notOk(collector.requests[0]?.headers['content-encoding']);
});

t.test('counts what a collector refuses, logs it once, and delays no request', async (t) => {
  const collector = await startCollector(t);
  collector.status = 400;
  const gateway = await start(t, collector, { OTEL_BSP_SCHEDULE_DELAY: '1' });
  await ask(gateway, 1);
  await until(() => gateway.sample('floodgate_spans_dropped_total', { reason: 'export' }) === 2);
  await ask(gateway, 1);
  await until(() => gateway.sample('floodgate_spans_dropped_total', { reason: 'export' }) === 4);
  const told = gateway.log.filter(({ msg }) => msg === 'spans cannot be sent');
  t.match(told, [{ collector: collector.origin, reason: String }]);
  t.equal(told.length, 1);
  collector.status = 200;
  await ask(gateway, 1);
  await collector.spansOf(2);
  await until(() => gateway.sample('floodgate_spans_exported_total') === 2);
});

t.test('a collector that does not answer: the queue is bounded, and no request waits', async (t) => {
  const collector = await startCollector(t);
  collector.status = 0;
  const gateway = await start(t, collector, {
    OTEL_BSP_MAX_QUEUE_SIZE: '6',
    OTEL_BSP_MAX_EXPORT_BATCH_SIZE: '2',
    OTEL_BSP_SCHEDULE_DELAY: '1',
    OTEL_EXPORTER_OTLP_TIMEOUT: '600000',
  });
  await ask(gateway, 1);
  await until(() => collector.requests.length === 1);
  // Each request has two spans, so three requests fill the queue behind the batch that is being sent.
  await ask(gateway, 5);
  await until(() => gateway.sample('floodgate_spans_dropped_total', { reason: 'queue' }) === 4);
  t.equal(collector.requests.length, 1, 'one batch at a time');
  const began = performance.now();
  await gateway.gateway.close();
  t.ok(performance.now() - began < 600_000, 'closing does not wait for the collector');
});

t.test('sends to a collector that requires a client certificate', async (t) => {
  const authority = createAuthority(t);
  const own = authority.issue('collector', 'IP:127.0.0.1');
  const ours = authority.issue('gateway', 'DNS:gateway');
  const collector = await startCollector(t, {
    cert: readFileSync(own.cert),
    key: readFileSync(own.key),
    ca: readFileSync(authority.ca),
    requestCert: true,
    rejectUnauthorized: true,
  });
  const gateway = await start(t, collector, {
    OTEL_EXPORTER_OTLP_CERTIFICATE: authority.ca,
    OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE: ours.cert,
    OTEL_EXPORTER_OTLP_CLIENT_KEY: ours.key,
    OTEL_BSP_SCHEDULE_DELAY: '1',
  });
  await ask(gateway, 1);
  await collector.spansOf(2);

  const stranger = await start(t, collector, { OTEL_BSP_SCHEDULE_DELAY: '1' });
  await ask(stranger, 1);
  await until(() => stranger.sample('floodgate_spans_dropped_total', { reason: 'export' }) === 2);
  t.equal(collector.spans.length, 2);
});

t.test('drops spans for a collector that is down, and counts them', async (t) => {
  const gateway = await start(
    t,
    { origin: `http://127.0.0.1:${await freePort()}` },
    {
      OTEL_BSP_SCHEDULE_DELAY: '1',
      OTEL_EXPORTER_OTLP_TIMEOUT: '100',
    },
  );
  await ask(gateway, 3);
  await until(() => gateway.sample('floodgate_spans_dropped_total', { reason: 'export' }) === 6);
});

t.test('a gateway that stops sends the remaining spans', async (t) => {
  const collector = await startCollector(t);
  const upstream = await startUpstream(t, (_req, res) => void res.end('ok'));
  const env = await environment({
    GATEWAY_UPSTREAM: upstream.origin,
    OTEL_EXPORTER_OTLP_ENDPOINT: collector.origin,
    OTEL_BSP_SCHEDULE_DELAY: '600000',
  });
  const gateway = await launch(t, env);
  await (await fetch(`http://127.0.0.1:${env.GATEWAY_PORT}/free`)).text();
  t.equal(collector.spans.length, 0);
  t.equal(await gateway.stop(), 0);
  t.equal(collector.spans.length, 2);
});
