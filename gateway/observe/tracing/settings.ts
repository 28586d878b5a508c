/**
 * Whether and how requests are traced. OpenTelemetry's SDK reads most of its variables itself: headers, timeout,
 * compression and certificates of the collector, and the attributes of the service. This file reads the rest: the SDK
 * leaves samplers and batches to its user, and it would replace a wrong endpoint with its default.
 */
import type { Millis } from '#shared/clock.ts';
import type { SettingsReader, Variable } from '#shared/configuration.ts';

const SAMPLERS = [
  'parentbased_always_on',
  'always_on',
  'always_off',
  'traceidratio',
  'parentbased_always_off',
  'parentbased_traceidratio',
] as const;

export interface TracingSettings {
  /** Origin of the collector, for the log. */
  readonly collector: string;
  readonly sampler: (typeof SAMPLERS)[number];
  /** Share of requests that are recorded, from 0 to 1. */
  readonly ratio: number;
  /** Maximum number of requests that one process records in a second. */
  readonly perSecondMax: number;
  /** Maximum number of spans that wait to be sent. */
  readonly queueMax: number;
  readonly batchMax: number;
  readonly delayMs: Millis;
}

export const TRACING_VARIABLES = [
  {
    name: 'GATEWAY_TRACES_PER_SECOND',
    default: '500',
    meaning:
      'maximum number of requests that one process records in a second, whatever the sampler and clients ask for',
  },
] as const satisfies readonly Variable[];

/** Documented by OpenTelemetry. The defaults are the same, except that tracing is off without an endpoint. */
export const OPENTELEMETRY_VARIABLES = [
  { name: 'OTEL_EXPORTER_OTLP_ENDPOINT', default: '' },
  { name: 'OTEL_EXPORTER_OTLP_TRACES_ENDPOINT', default: '' },
  { name: 'OTEL_EXPORTER_OTLP_PROTOCOL', default: 'http/protobuf' },
  { name: 'OTEL_EXPORTER_OTLP_TRACES_PROTOCOL', default: '' },
  { name: 'OTEL_TRACES_SAMPLER', default: 'parentbased_always_on' },
  { name: 'OTEL_TRACES_SAMPLER_ARG', default: '1' },
  { name: 'OTEL_BSP_MAX_QUEUE_SIZE', default: '2048' },
  { name: 'OTEL_BSP_MAX_EXPORT_BATCH_SIZE', default: '512' },
  { name: 'OTEL_BSP_SCHEDULE_DELAY', default: '5000' },
  { name: 'OTEL_TRACES_EXPORTER', default: 'otlp' },
  { name: 'OTEL_SDK_DISABLED', default: 'false' },
] as const;

type Read = SettingsReader<(typeof TRACING_VARIABLES | typeof OPENTELEMETRY_VARIABLES)[number]['name']>;

/**
 * @returns null if tracing is off. Then the other variables are not checked, because they may be for other programs.
 */
export function readTracing(read: Read): TracingSettings | null {
  const endpoint =
    read.text('OTEL_EXPORTER_OTLP_TRACES_ENDPOINT') === ''
      ? 'OTEL_EXPORTER_OTLP_ENDPOINT'
      : 'OTEL_EXPORTER_OTLP_TRACES_ENDPOINT';
  if (read.text(endpoint) === '') return null;
  if (read.text('OTEL_SDK_DISABLED').toLowerCase() === 'true') return null;
  if (read.choice('OTEL_TRACES_EXPORTER', ['otlp', 'none']) === 'none') return null;
  refuseOtherProtocols(read);
  const queueMax = read.integer('OTEL_BSP_MAX_QUEUE_SIZE', 1, 100_000);
  return {
    collector: read.parse(endpoint, '', originOf),
    sampler: read.choice('OTEL_TRACES_SAMPLER', SAMPLERS),
    ratio: read.share('OTEL_TRACES_SAMPLER_ARG'),
    perSecondMax: read.integer('GATEWAY_TRACES_PER_SECOND', 0, 1_000_000),
    queueMax,
    batchMax: Math.min(queueMax, read.integer('OTEL_BSP_MAX_EXPORT_BATCH_SIZE', 1, 100_000)),
    delayMs: read.integer('OTEL_BSP_SCHEDULE_DELAY', 1, 600_000),
  };
}

function refuseOtherProtocols(read: Read): void {
  const own = read.text('OTEL_EXPORTER_OTLP_TRACES_PROTOCOL');
  const name = own === '' ? 'OTEL_EXPORTER_OTLP_PROTOCOL' : 'OTEL_EXPORTER_OTLP_TRACES_PROTOCOL';
  const protocol = read.text(name);
  if (protocol === 'http/protobuf') return;
  read.refuse(
    name,
    `"${protocol}" is not supported; set OTEL_EXPORTER_OTLP_TRACES_PROTOCOL=http/protobuf with an endpoint that accepts it, usually on port 4318, or OTEL_TRACES_EXPORTER=none`,
  );
}

function originOf(value: string): string {
  const url = URL.parse(value);
  if (url === null || (url.protocol !== 'http:' && url.protocol !== 'https:'))
    throw new Error('it must be an address such as http://127.0.0.1:4318');
  if (url.username + url.password !== '')
    throw new Error('user and password do not belong here; set OTEL_EXPORTER_OTLP_HEADERS');
  return url.origin;
}
