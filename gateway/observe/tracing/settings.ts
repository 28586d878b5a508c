/** The settings of tracing, under the names that OpenTelemetry gives them. */
import { readFileSync } from 'node:fs';
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
  /** Where spans are sent, path included. */
  readonly url: string;
  readonly timeoutMs: Millis;
  readonly isCompressed: boolean;
  readonly serviceName: string;
  readonly resource: Readonly<Record<string, string>>;
  readonly sampler: (typeof SAMPLERS)[number];
  /** From 0 to 1. */
  readonly ratio: number;
  /** Requests that one process records in a second. */
  readonly perSecondMax: number;
  /** Spans that wait to be sent. */
  readonly queueMax: number;
  readonly batchMax: number;
  readonly delayMs: Millis;
}

export interface TracingSecrets {
  readonly headers: Readonly<Record<string, string>>;
  /** PEM; undefined: the authorities that Node trusts, and no certificate of our own. */
  readonly ca: string | undefined;
  readonly cert: string | undefined;
  readonly key: string | undefined;
}

export const TRACING_VARIABLES = [
  {
    name: 'OTEL_EXPORTER_OTLP_ENDPOINT',
    default: '',
    meaning:
      'address of a collector that accepts spans over OTLP/HTTP, such as `http://127.0.0.1:4318`; unset: no tracing',
  },
  {
    name: 'OTEL_EXPORTER_OTLP_TRACES_ENDPOINT',
    default: '',
    meaning: 'the same including the path, such as `http://127.0.0.1:4318/v1/traces`; takes precedence',
  },
  {
    name: 'OTEL_EXPORTER_OTLP_PROTOCOL',
    default: 'http/protobuf',
    meaning: 'protocol of the collector; no other value is supported',
  },
  { name: 'OTEL_EXPORTER_OTLP_TRACES_PROTOCOL', default: '', meaning: 'the same; takes precedence' },
  {
    name: 'OTEL_EXPORTER_OTLP_HEADERS',
    default: '',
    meaning: 'headers to send with the spans: `name=value,name=value`, percent-encoded',
  },
  { name: 'OTEL_EXPORTER_OTLP_TRACES_HEADERS', default: '', meaning: 'the same; takes precedence' },
  {
    name: 'OTEL_EXPORTER_OTLP_TIMEOUT',
    default: '10000',
    meaning: 'milliseconds for sending one batch, including retries',
  },
  {
    name: 'OTEL_EXPORTER_OTLP_COMPRESSION',
    default: 'none',
    meaning: 'compression of the batches: `none` or `gzip`',
  },
  {
    name: 'OTEL_EXPORTER_OTLP_CERTIFICATE',
    default: '',
    meaning: 'PEM file of the certificate authorities that signed the certificate of the collector',
  },
  {
    name: 'OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE',
    default: '',
    meaning: 'PEM file of the client certificate for the collector',
  },
  { name: 'OTEL_EXPORTER_OTLP_CLIENT_KEY', default: '', meaning: 'PEM file of its private key' },
  { name: 'OTEL_SERVICE_NAME', default: 'floodgate', meaning: '`service.name` of the spans' },
  {
    name: 'OTEL_RESOURCE_ATTRIBUTES',
    default: '',
    meaning: 'further attributes of the service: `deployment.environment.name=production`',
  },
  {
    name: 'OTEL_TRACES_SAMPLER',
    default: 'parentbased_always_on',
    meaning:
      'which requests are recorded: `always_on`, `always_off` or `traceidratio`; with the prefix `parentbased_`, a `traceparent` header of the request decides first',
  },
  {
    name: 'OTEL_TRACES_SAMPLER_ARG',
    default: '1',
    meaning: 'share of the requests for `traceidratio`, from 0 to 1',
  },
  {
    name: 'OTEL_BSP_MAX_QUEUE_SIZE',
    default: '2048',
    meaning: 'most spans that wait to be sent; further ones are dropped',
  },
  { name: 'OTEL_BSP_MAX_EXPORT_BATCH_SIZE', default: '512', meaning: 'most spans in one batch' },
  {
    name: 'OTEL_BSP_SCHEDULE_DELAY',
    default: '5000',
    meaning: 'milliseconds that a span waits for others before a batch is sent',
  },
  { name: 'OTEL_TRACES_EXPORTER', default: 'otlp', meaning: '`otlp`, or `none` to switch tracing off' },
  { name: 'OTEL_SDK_DISABLED', default: 'false', meaning: '`true` switches tracing off' },
  {
    name: 'GATEWAY_TRACES_PER_SECOND',
    default: '500',
    meaning: 'most requests that one process records in a second, whatever the sampler and clients ask for',
  },
] as const satisfies readonly Variable[];

type Read = SettingsReader<(typeof TRACING_VARIABLES)[number]['name']>;

export interface TracingConfig {
  readonly settings: TracingSettings;
  readonly secrets: TracingSecrets;
}

/** @returns null: no tracing; its other variables are not looked at then, they may be meant for other programs */
export function readTracing(read: Read): TracingConfig | null {
  const own = read.text('OTEL_EXPORTER_OTLP_TRACES_ENDPOINT');
  const common = read.text('OTEL_EXPORTER_OTLP_ENDPOINT');
  if (own === '' && common === '') return null;
  if (read.text('OTEL_SDK_DISABLED').toLowerCase() === 'true') return null;
  if (read.choice('OTEL_TRACES_EXPORTER', ['otlp', 'none']) === 'none') return null;
  refuseOtherProtocols(read);
  const queueMax = read.integer('OTEL_BSP_MAX_QUEUE_SIZE', 1, 100_000);
  const settings: TracingSettings = {
    url:
      own === ''
        ? read.parse('OTEL_EXPORTER_OTLP_ENDPOINT', '', (value) => withTracesPath(collector(value)))
        : read.parse('OTEL_EXPORTER_OTLP_TRACES_ENDPOINT', '', (value) => collector(value).href),
    timeoutMs: read.integer('OTEL_EXPORTER_OTLP_TIMEOUT', 1, 600_000),
    isCompressed: read.choice('OTEL_EXPORTER_OTLP_COMPRESSION', ['none', 'gzip']) === 'gzip',
    serviceName: read.text('OTEL_SERVICE_NAME'),
    resource: read.parse('OTEL_RESOURCE_ATTRIBUTES', {}, pairsOf),
    sampler: read.choice('OTEL_TRACES_SAMPLER', SAMPLERS),
    ratio: read.parse('OTEL_TRACES_SAMPLER_ARG', 1, shareOfRequests),
    perSecondMax: read.integer('GATEWAY_TRACES_PER_SECOND', 0, 1_000_000),
    queueMax,
    batchMax: Math.min(queueMax, read.integer('OTEL_BSP_MAX_EXPORT_BATCH_SIZE', 1, 100_000)),
    delayMs: read.integer('OTEL_BSP_SCHEDULE_DELAY', 1, 600_000),
  };
  const secrets: TracingSecrets = {
    headers: {
      ...read.parse('OTEL_EXPORTER_OTLP_HEADERS', {}, headersOf),
      ...read.parse('OTEL_EXPORTER_OTLP_TRACES_HEADERS', {}, headersOf),
    },
    ca: read.parse('OTEL_EXPORTER_OTLP_CERTIFICATE', undefined, fileText),
    cert: read.parse('OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE', undefined, fileText),
    key: read.parse('OTEL_EXPORTER_OTLP_CLIENT_KEY', undefined, fileText),
  };
  return { settings, secrets };
}

function refuseOtherProtocols(read: Read): void {
  const own = read.text('OTEL_EXPORTER_OTLP_TRACES_PROTOCOL');
  const name = own === '' ? 'OTEL_EXPORTER_OTLP_PROTOCOL' : 'OTEL_EXPORTER_OTLP_TRACES_PROTOCOL';
  const protocol = read.text(name);
  if (protocol === 'http/protobuf') return;
  read.refuse(
    name,
    `"${protocol}" is not spoken here; set OTEL_EXPORTER_OTLP_TRACES_PROTOCOL=http/protobuf with an endpoint that takes it, usually on port 4318, or OTEL_TRACES_EXPORTER=none`,
  );
}

function collector(value: string): URL {
  const url = URL.parse(value);
  if (url === null || (url.protocol !== 'http:' && url.protocol !== 'https:'))
    throw new Error('it must be an address such as http://127.0.0.1:4318');
  if (url.username + url.password !== '')
    throw new Error('user and password do not belong here; set OTEL_EXPORTER_OTLP_HEADERS');
  return url;
}

function withTracesPath(url: URL): string {
  url.pathname = `${url.pathname.replace(/\/+$/, '')}/v1/traces`;
  return url.href;
}

function shareOfRequests(value: string): number {
  const number = Number(value);
  if (!(number >= 0 && number <= 1)) throw new Error('it must be a number from 0 to 1, such as 0.1');
  return number;
}

function fileText(file: string): string | undefined {
  if (file === '') return undefined;
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    throw new Error(`${file} cannot be read (${(error as NodeJS.ErrnoException).code})`);
  }
}

/** `name=value,name=value`; percent-encoded, as in W3C Baggage. */
function pairsOf(text: string): Record<string, string> {
  const pairs = text
    .split(',')
    .map((pair) => pair.trim())
    .filter((pair) => pair !== '')
    .map((pair) => {
      const at = pair.indexOf('=');
      if (at < 1) throw new Error('it must be a list such as name=value,name=value');
      return [pair.slice(0, at).trim(), decoded(pair.slice(at + 1).trim())] as const;
    });
  return Object.fromEntries(pairs);
}

function headersOf(text: string): Record<string, string> {
  const headers = pairsOf(text);
  for (const [name, value] of Object.entries(headers)) {
    if (!/^[!#$%&'*+.^_`|~0-9a-z-]+$/i.test(name)) throw new Error(`"${name}" is not the name of a header`);
    if (!/^[\t -~]*$/.test(value)) throw new Error(`the value of ${name} must consist of ASCII characters`);
  }
  return headers;
}

function decoded(value: string): string {
  try {
    return decodeURIComponent(value);
  } catch {
    throw new Error('a % must be written as %25');
  }
}
