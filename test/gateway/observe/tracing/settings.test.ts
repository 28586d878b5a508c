/** The variables of OpenTelemetry: what they mean here, and what is said of those that are wrong. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { readConfig } from '#gateway/config.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';

const read = (env: Record<string, string>) => readConfig(env, 1);
const ENDPOINT = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector:4318' };

t.test('no tracing, whatever else is set', async (t) => {
  const wrong = {
    OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc',
    OTEL_TRACES_SAMPLER: 'xray',
    OTEL_BSP_SCHEDULE_DELAY: 'x',
  };
  for (const env of [
    {},
    wrong,
    { ...wrong, ...ENDPOINT, OTEL_SDK_DISABLED: 'TRUE' },
    { ...wrong, ...ENDPOINT, OTEL_TRACES_EXPORTER: 'none' },
  ]) {
    const { config, secrets } = read(env);
    t.equal(config.tracing, null);
    t.equal(secrets.tracing, null);
  }
});

t.test('defaults are those of OpenTelemetry', async (t) => {
  const { config, secrets } = read(ENDPOINT);
  t.strictSame(config.tracing, {
    url: 'http://collector:4318/v1/traces',
    timeoutMs: 10_000,
    isCompressed: false,
    serviceName: 'floodgate',
    resource: {},
    sampler: 'parentbased_always_on',
    ratio: 1,
    perSecondMax: 500,
    queueMax: 2048,
    batchMax: 512,
    delayMs: 5000,
  });
  t.strictSame(secrets.tracing, { headers: {}, ca: undefined, cert: undefined, key: undefined });
});

t.test('all of them', async (t) => {
  const ca = join(temporaryFolder(t), 'ca.pem');
  writeFileSync(ca, 'a certificate');
  const { config, secrets } = read({
    OTEL_EXPORTER_OTLP_ENDPOINT: 'https://collector/otel/',
    OTEL_EXPORTER_OTLP_HEADERS: 'authorization=Basic%20abc%3D, x-tenant=a',
    OTEL_EXPORTER_OTLP_TRACES_HEADERS: 'x-tenant=b',
    OTEL_EXPORTER_OTLP_COMPRESSION: 'gzip',
    OTEL_EXPORTER_OTLP_CERTIFICATE: ca,
    OTEL_SERVICE_NAME: 'edge',
    OTEL_RESOURCE_ATTRIBUTES: 'deployment.environment.name=production,team=a%2Cb',
    OTEL_TRACES_SAMPLER: 'parentbased_traceidratio',
    OTEL_TRACES_SAMPLER_ARG: '0.25',
    OTEL_BSP_MAX_QUEUE_SIZE: '100',
  });
  t.match(config.tracing, {
    url: 'https://collector/otel/v1/traces',
    isCompressed: true,
    serviceName: 'edge',
    resource: { 'deployment.environment.name': 'production', team: 'a,b' },
    sampler: 'parentbased_traceidratio',
    ratio: 0.25,
    queueMax: 100,
    batchMax: 100,
  });
  t.strictSame(secrets.tracing?.headers, { authorization: 'Basic abc=', 'x-tenant': 'b' });
  t.equal(secrets.tracing?.ca, 'a certificate');
  t.notMatch(JSON.stringify(config), /Basic/, 'the configuration can be logged');
  t.equal(
    read({ ...ENDPOINT, OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'http://own:1/as/it/is' }).config.tracing?.url,
    'http://own:1/as/it/is',
  );
});

t.test('mistakes are told with what would be right', async (t) => {
  for (const [name, value, told] of [
    ['OTEL_EXPORTER_OTLP_ENDPOINT', 'collector:4317', /such as http:\/\/127\.0\.0\.1:4318/],
    ['OTEL_EXPORTER_OTLP_ENDPOINT', 'http://user:pass@collector', /OTEL_EXPORTER_OTLP_HEADERS/],
    ['OTEL_EXPORTER_OTLP_TRACES_ENDPOINT', 'grpc://collector', /must be an address/],
    ['OTEL_EXPORTER_OTLP_PROTOCOL', 'grpc', /TRACES_PROTOCOL=http\/protobuf.*TRACES_EXPORTER=none/],
    ['OTEL_EXPORTER_OTLP_TRACES_PROTOCOL', 'http/json', /"http\/json" is not spoken here/],
    ['OTEL_EXPORTER_OTLP_HEADERS', 'authorization', /name=value,name=value/],
    ['OTEL_EXPORTER_OTLP_HEADERS', 'a b=c', /"a b" is not the name of a header/],
    ['OTEL_EXPORTER_OTLP_HEADERS', 'a=b%0D%0Ac', /the value of a must/],
    ['OTEL_EXPORTER_OTLP_HEADERS', 'a=100%', /%25/],
    ['OTEL_EXPORTER_OTLP_COMPRESSION', 'zstd', /none, gzip/],
    ['OTEL_EXPORTER_OTLP_CERTIFICATE', '/not/there.pem', /cannot be read \(ENOENT\)/],
    ['OTEL_TRACES_SAMPLER', 'xray', /not one of parentbased_always_on/],
    ['OTEL_TRACES_SAMPLER_ARG', '2', /from 0 to 1/],
    ['OTEL_BSP_MAX_QUEUE_SIZE', '0', /from 1 to/],
    ['GATEWAY_TRACES_PER_SECOND', '-1', /from 0 to/],
  ] as const) {
    const problem = new RegExp(`^${name}: .*${told.source}`);
    let error: unknown = null;
    try {
      read({ ...ENDPOINT, [name]: value });
    } catch (thrown) {
      error = thrown;
    }
    t.match(error, { problems: [problem] }, `${name}=${value}`);
  }
});
