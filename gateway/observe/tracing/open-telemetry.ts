/** Records spans and exports them with OpenTelemetry. Loaded only if a collector is configured. */
import {
  createTraceState,
  DiagLogLevel,
  diag,
  ROOT_CONTEXT,
  SpanKind,
  type Tracer,
  trace,
} from '@opentelemetry/api';
import { parseTraceParent } from '@opentelemetry/core';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-proto';
import {
  defaultResource,
  detectResources,
  type Resource,
  resourceAttributesEnvDetector,
  resourceFromAttributes,
  serviceNameEnvDetector,
} from '@opentelemetry/resources';
import { BatchSpanProcessor, TracerProvider } from '@opentelemetry/sdk-trace';
import type { RequestTrace, Tracing } from '#gateway/observe/trace.ts';
import { counter, type Sample } from '#gateway/part/sample.ts';
import type { Clock, Millis } from '#shared/clock.ts';
import { onceAMinute } from '#shared/once-a-minute.ts';
import { VERSION } from '#shared/version.ts';
import { within } from '#shared/within.ts';
import { LimitedSampler } from './sampling.ts';
import type { TracingSettings } from './settings.ts';
import { SpanQueue } from './span-queue.ts';
import { type Application, applicationAt, SpannedRequest } from './spanned-request.ts';
import { traceHeadersOf } from './trace-headers.ts';

interface TracingOptions {
  readonly settings: TracingSettings;
  /** Milliseconds since the epoch. */
  readonly clock: Clock;
  readonly replica: string;
  readonly upstream: string;
  readonly warn: (fields: object, message: string) => void;
}

/** Time for the last export when the process ends. */
const CLOSE_MS: Millis = 1000;
const VALUE_MAX = 1000;

export class OpenTelemetry implements Tracing {
  readonly #queue: SpanQueue;
  readonly #sampler: LimitedSampler;
  readonly #provider: TracerProvider;
  readonly #tracer: Tracer;
  readonly #application: Application;
  readonly #onUnsent: (error: Error | undefined) => void;

  constructor(options: TracingOptions) {
    const { settings, clock, replica, warn } = options;
    this.#onUnsent = onceAMinute(clock, (error: Error | undefined) =>
      warn({ collector: settings.collector, reason: error?.message }, 'spans cannot be sent'),
    );
    this.#sampler = new LimitedSampler(settings, clock);
    this.#queue = new SpanQueue(settings.queueMax, this.#onUnsent);
    const { exporter, resource } = configuredByEnvironment(options);
    const batches = new BatchSpanProcessor({
      exporter: this.#queue.counted(exporter),
      maxQueueSize: settings.queueMax,
      maxExportBatchSize: settings.batchMax,
      scheduledDelayMillis: settings.delayMs,
    });
    const ours = resourceFromAttributes({
      'service.name': 'floodgate',
      'service.version': VERSION,
      'service.instance.id': replica,
    });
    this.#provider = new TracerProvider({
      sampler: this.#sampler,
      resource: defaultResource().merge(ours).merge(resource),
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
    const requestsHelp = 'Requests sampled for recording.';
    const dropped = 'floodgate_spans_dropped_total';
    const droppedHelp = 'Spans that did not reach the collector.';
    return [
      counter(requests, requestsHelp, recorded, { result: 'recorded' }),
      counter(requests, requestsHelp, overLimit, { result: 'over_limit' }),
      counter('floodgate_spans_exported_total', 'Spans that the collector accepted.', exported),
      counter(dropped, droppedHelp, droppedFull, { reason: 'queue' }),
      counter(dropped, droppedHelp, droppedUnsent, { reason: 'export' }),
    ];
  }

  async close(): Promise<void> {
    await within(CLOSE_MS, this.#provider.shutdown()).catch(this.#onUnsent);
  }
}

/**
 * The SDK reads its own variables here: address, headers, timeout, compression and certificates of the collector, and
 * the attributes of the service. It warns of a wrong value and uses its default; the log repeats the warning.
 */
function configuredByEnvironment({ warn }: TracingOptions): {
  readonly exporter: OTLPTraceExporter;
  readonly resource: Resource;
} {
  const log = (message: string): void => warn({}, message);
  const ignore = (): void => undefined;
  // The attributes of the service are all ignored if one is wrong, and only a debug message says so.
  const logFailure = (message: string): void => {
    if (message.includes(' failed: ')) log(message);
  };
  diag.setLogger(
    { error: log, warn: log, info: ignore, debug: logFailure, verbose: ignore },
    { logLevel: DiagLogLevel.DEBUG, suppressOverrideMessage: true },
  );
  try {
    return {
      exporter: new OTLPTraceExporter(),
      resource: detectResources({ detectors: [resourceAttributesEnvDetector, serviceNameEnvDetector] }),
    };
  } finally {
    // Later warnings of the SDK repeat what the metrics count.
    diag.disable();
  }
}
