/** The variables of OpenTelemetry that the gateway reads itself, and the errors for wrong values. */
import t from 'tap';
import {
  OPENTELEMETRY_VARIABLES,
  readTracing,
  TRACING_VARIABLES,
} from '#gateway/observe/tracing/settings.ts';
import { readSettings } from '#shared/configuration.ts';

const read = (env: Record<string, string>) =>
  readSettings(
    { variables: [...TRACING_VARIABLES, ...OPENTELEMETRY_VARIABLES], removed: {} },
    env,
    readTracing,
  );
const ENDPOINT = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector:4318' };

t.test('reads no settings while tracing is off', async (t) => {
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
    t.equal(read(env), null);
  }
});

t.test('the defaults are those of OpenTelemetry', async (t) => {
  t.strictSame(read(ENDPOINT), {
    collector: 'http://collector:4318',
    sampler: 'parentbased_always_on',
    ratio: 1,
    perSecondMax: 500,
    queueMax: 2048,
    batchMax: 512,
    delayMs: 5000,
  });
});

t.test('reads all settings', async (t) => {
  const settings = read({
    OTEL_EXPORTER_OTLP_ENDPOINT: 'https://collector/otel/',
    OTEL_EXPORTER_OTLP_HEADERS: 'authorization=Basic%20abc%3D',
    OTEL_TRACES_SAMPLER: 'parentbased_traceidratio',
    OTEL_TRACES_SAMPLER_ARG: '0.25',
    OTEL_BSP_MAX_QUEUE_SIZE: '100',
  });
  t.match(settings, {
    collector: 'https://collector',
    sampler: 'parentbased_traceidratio',
    ratio: 0.25,
    queueMax: 100,
    batchMax: 100,
  });
  t.notMatch(JSON.stringify(settings), /Basic/, 'the settings have no credentials');
  t.equal(
    read({ ...ENDPOINT, OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'http://own:1/as/it/is' })?.collector,
    'http://own:1',
  );
});

t.test('errors say how to correct the setting', async (t) => {
  for (const [name, value, told] of [
    ['OTEL_EXPORTER_OTLP_ENDPOINT', 'collector:4317', /such as http:\/\/127\.0\.0\.1:4318/],
    ['OTEL_EXPORTER_OTLP_ENDPOINT', 'http://user:pass@collector', /OTEL_EXPORTER_OTLP_HEADERS/],
    ['OTEL_EXPORTER_OTLP_TRACES_ENDPOINT', 'grpc://collector', /must be an address/],
    ['OTEL_EXPORTER_OTLP_PROTOCOL', 'grpc', /TRACES_PROTOCOL=http\/protobuf.*TRACES_EXPORTER=none/],
    ['OTEL_EXPORTER_OTLP_TRACES_PROTOCOL', 'http/json', /"http\/json" is not supported/],
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
