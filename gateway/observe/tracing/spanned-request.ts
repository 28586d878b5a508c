/**
 * The spans of a request: its own, the wait for the store, and the call of the application (OpenTelemetry HTTP
 * conventions).
 */
import {
  type Attributes,
  ROOT_CONTEXT,
  type Span,
  SpanKind,
  SpanStatusCode,
  type Tracer,
  trace,
} from '@opentelemetry/api';
import type { EndedRequest, RequestTrace } from '#gateway/observe/trace.ts';
import type { Millis } from '#shared/clock.ts';
import { replaceTraceParent } from './trace-headers.ts';

export interface Application {
  readonly origin: string;
  readonly attributes: Attributes;
}

export function applicationAt(origin: string): Application {
  const { hostname, port, protocol } = new URL(origin);
  const attributes = {
    'server.address': hostname,
    'server.port': Number(port) || (protocol === 'https:' ? 443 : 80),
  };
  return { origin, attributes };
}

export class SpannedRequest implements RequestTrace {
  readonly #tracer: Tracer;
  readonly #span: Span;
  readonly #continues: boolean;
  readonly #application: Application;
  #forwarded: Span | null = null;

  constructor(tracer: Tracer, span: Span, continues: boolean, application: Application) {
    this.#tracer = tracer;
    this.#span = span;
    this.#continues = continues;
    this.#application = application;
  }

  get isRecorded(): boolean {
    return this.#span.isRecording();
  }

  get traceId(): string {
    return this.#span.spanContext().traceId;
  }

  forward(headers: string[], at: Millis): void {
    if (this.isRecorded) this.#forwarded = this.#child('forward', at);
    const { traceId, spanId, traceFlags } = (this.#forwarded ?? this.#span).spanContext();
    const flags = traceFlags.toString(16).padStart(2, '0');
    replaceTraceParent(headers, `00-${traceId}-${spanId}-${flags}`, this.#continues);
  }

  end(ended: EndedRequest): void {
    const { method, path, scheme, route, status, decision, decisionId, policy, policies, store, endedAt } =
      ended;
    if (store !== null) {
      const span = this.#child('spend', store.askedAt);
      span.setAttribute('db.system.name', 'redis');
      if (store.hasFailed) span.setStatus({ code: SpanStatusCode.ERROR });
      span.end(store.answeredAt);
    }
    this.#endForwarded(ended);
    const span = this.#span;
    if (route !== null) span.updateName(`${method} ${route}`).setAttribute('http.route', route);
    span.setAttributes({
      'http.request.method': method,
      'url.path': path,
      'url.scheme': scheme,
      'floodgate.decision': decision,
      'floodgate.policies': [...policies],
    });
    if (decisionId !== null) span.setAttribute('floodgate.decision.id', decisionId);
    if (policy !== null) span.setAttribute('floodgate.policy', policy);
    if (status !== null) span.setAttribute('http.response.status_code', status);
    const error = errorOf(ended);
    if (error !== null) span.setAttribute('error.type', error).setStatus({ code: SpanStatusCode.ERROR });
    span.end(endedAt);
  }

  #endForwarded(ended: EndedRequest): void {
    const span = this.#forwarded;
    if (span === null) return;
    const { method, path, status, repliedAt, endedAt } = ended;
    const { origin, attributes } = this.#application;
    span
      .updateName(method)
      .setAttributes(attributes)
      .setAttributes({
        'http.request.method': method,
        'url.full': `${origin}${path}`,
      });
    if (repliedAt !== null) {
      span.addEvent('reply begun', repliedAt);
      if (status !== null) span.setAttribute('http.response.status_code', status);
    }
    const error = errorOf(ended);
    if (error !== null) span.setAttribute('error.type', error).setStatus({ code: SpanStatusCode.ERROR });
    span.end(endedAt);
  }

  #child(name: string, at: Millis): Span {
    return this.#tracer.startSpan(
      name,
      { kind: SpanKind.CLIENT, startTime: at },
      trace.setSpan(ROOT_CONTEXT, this.#span),
    );
  }
}

function errorOf({ status, isCut }: EndedRequest): string | null {
  if (isCut) return 'cut';
  return status !== null && status >= 500 ? String(status) : null;
}
