/** The one place that makes spans and sends them. Loaded only where a collector is configured. */
import { createTraceState, ROOT_CONTEXT, SpanKind, type Tracer, trace } from '@opentelemetry/api';
import { parseTraceParent } from '@opentelemetry/core';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-proto';
import { CompressionAlgorithm } from '@opentelemetry/otlp-exporter-base';
import { defaultResource, resourceFromAttributes } from '@opentelemetry/resources';
import { BatchSpanProcessor, TracerProvider } from '@opentelemetry/sdk-trace';
import { counter, type Sample } from '#gateway/observe/metrics/metrics.ts';
import type { Clock, Millis } from '#shared/clock.ts';
import { VERSION } from '#shared/version.ts';
import { within } from '#shared/within.ts';
import { LimitedSampler } from './sampling.ts';
import type { TracingSecrets, TracingSettings } from './settings.ts';
import { SpanQueue } from './span-queue.ts';
import { type Application, applicationAt, SpannedRequest } from './spanned-request.ts';
import { traceHeadersOf } from './trace-headers.ts';
import type { RequestTrace, Tracing } from './tracing.ts';

export interface TracingOptions {
  readonly settings: TracingSettings;
  readonly secrets: TracingSecrets;
  /** Milliseconds since the epoch. */
  readonly clock: Clock;
  /** Name of this process. */
  readonly replica: string;
  /** Origin of the application. */
  readonly upstream: string;
  readonly warn: (fields: object, message: string) => void;
}

/** For what is left at the end. */
const CLOSE_MS: Millis = 1000;
/** Said at most once in this time. */
const WARN_MS: Millis = 60_000;
/** Longer values of attributes are cut. */
const VALUE_MAX = 1000;
/** The exporter gives up first, and says why. */
const EXPORT_GRACE_MS: Millis = 1000;

export class OpenTelemetry implements Tracing {
  readonly #options: TracingOptions;
  readonly #queue: SpanQueue;
  readonly #sampler: LimitedSampler;
  readonly #provider: TracerProvider;
  readonly #tracer: Tracer;
  readonly #application: Application;
  #warnedAt: Millis = Number.NEGATIVE_INFINITY;

  constructor(options: TracingOptions) {
    const { settings, replica, clock } = options;
    this.#options = options;
    this.#sampler = new LimitedSampler(settings, clock);
    this.#queue = new SpanQueue(settings.queueMax, (error) => this.#onUnsent(error));
    const batches = new BatchSpanProcessor({
      exporter: this.#queue.counted(exporterOf(options)),
      maxQueueSize: settings.queueMax,
      maxExportBatchSize: settings.batchMax,
      scheduledDelayMillis: settings.delayMs,
      exportTimeoutMillis: settings.timeoutMs + EXPORT_GRACE_MS,
    });
    const resource = resourceFromAttributes({
      'service.version': VERSION,
      'service.instance.id': replica,
      ...settings.resource,
      'service.name': settings.serviceName,
    });
    this.#provider = new TracerProvider({
      sampler: this.#sampler,
      resource: defaultResource().merge(resource),
      spanLimits: { attributeValueLengthLimit: VALUE_MAX },
      spanProcessors: [this.#queue.bounded(batches)],
    });
    this.#application = applicationAt(options.upstream);
    this.#tracer = this.#provider.getTracer('floodgate', VERSION);
  }

  begin(method: string, rawHeaders: readonly string[], at: Millis): RequestTrace {
    const { parent, state } = traceHeadersOf(rawHeaders);
    const remote = parent === '' ? null : parseTraceParent(parent);
    const context =
      remote === null
        ? ROOT_CONTEXT
        : trace.setSpanContext(ROOT_CONTEXT, {
            ...remote,
            isRemote: true,
            ...(state === '' ? {} : { traceState: createTraceState(state) }),
          });
    const span = this.#tracer.startSpan(method, { kind: SpanKind.SERVER, startTime: at }, context);
    return new SpannedRequest(this.#tracer, span, remote !== null, this.#application);
  }

  samples(): Sample[] {
    const { exported, droppedFull, droppedUnsent } = this.#queue;
    const { recorded, overLimit } = this.#sampler;
    const requests = 'floodgate_traces_total';
    const requestsHelp = 'Requests that were to be recorded.';
    const dropped = 'floodgate_spans_dropped_total';
    const droppedHelp = 'Spans that did not reach the collector.';
    return [
      counter(requests, requestsHelp, recorded, { result: 'recorded' }),
      counter(requests, requestsHelp, overLimit, { result: 'over_limit' }),
      counter('floodgate_spans_exported_total', 'Spans that the collector took.', exported),
      counter(dropped, droppedHelp, droppedFull, { reason: 'queue' }),
      counter(dropped, droppedHelp, droppedUnsent, { reason: 'export' }),
    ];
  }

  async close(): Promise<void> {
    await within(CLOSE_MS, this.#provider.shutdown()).catch((error: Error) => this.#onUnsent(error));
  }

  #onUnsent(error: Error | undefined): void {
    const { clock, settings, warn } = this.#options;
    const now = clock();
    if (now - this.#warnedAt < WARN_MS) return;
    this.#warnedAt = now;
    warn({ collector: new URL(settings.url).origin, reason: error?.message }, 'spans cannot be sent');
  }
}

function exporterOf({ settings, secrets }: TracingOptions): OTLPTraceExporter {
  const { ca, cert, key, headers } = secrets;
  return new OTLPTraceExporter({
    url: settings.url,
    headers,
    timeoutMillis: settings.timeoutMs,
    compression: settings.isCompressed ? CompressionAlgorithm.GZIP : CompressionAlgorithm.NONE,
    httpAgentOptions: {
      keepAlive: true,
      ...(ca === undefined ? {} : { ca }),
      ...(cert === undefined ? {} : { cert }),
      ...(key === undefined ? {} : { key }),
    },
  });
}
