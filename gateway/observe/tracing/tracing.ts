/**
 * Tracing, as the data plane sees it. What speaks OpenTelemetry is loaded only where a collector is configured
 * (open-telemetry.ts): a gateway without one pays nothing for it.
 *
 * A request continues the trace of its `traceparent`, or begins one. It becomes a span, with one child for the wait for
 * the store and one for the application, which gets that one's id as its parent. A request that is not recorded is
 * forwarded as not sampled, so that nothing behind the gateway is recorded either.
 */
import type { Sample } from '#gateway/observe/metrics/metrics.ts';
import type { Millis } from '#shared/clock.ts';

export interface Tracing {
  /** @param rawHeaders of the request, names and values in turn */
  begin(method: string, rawHeaders: readonly string[], at: Millis): RequestTrace;
  samples(): Sample[];
  /** Sends what is left, for at most a second. */
  close(): Promise<void>;
}

export interface RequestTrace {
  readonly isRecorded: boolean;
  /** 32 hexadecimal digits. */
  readonly traceId: string;
  /** The request goes on. @param headers for the upstream, names and values in turn: `traceparent` is replaced */
  forward(headers: string[], at: Millis): void;
  /** Once, and only of a request that is recorded. */
  end(ended: EndedRequest): void;
}

/** What is known of a request when it is over. */
export interface EndedRequest {
  readonly method: string;
  /** Canonical, without the query. */
  readonly path: string;
  readonly scheme: 'http' | 'https';
  /** Pattern of the tightest, or denying, policy's route; null: none covers it. */
  readonly route: string | null;
  /** null: the client was gone before a reply began. */
  readonly status: number | null;
  /** As in the access log. */
  readonly decision: string;
  readonly decisionId: string | null;
  readonly policy: string | null;
  readonly policies: readonly string[];
  /** null: it was not asked. */
  readonly store: StoreWait | null;
  /** When the application's reply began. */
  readonly repliedAt: Millis | null;
  readonly endedAt: Millis;
  /** The reply did not end as it should have. */
  readonly isCut: boolean;
}

export interface StoreWait {
  readonly askedAt: Millis;
  readonly answeredAt: Millis;
  /** The store did not answer: the policies' own rule decided. */
  readonly hasFailed: boolean;
}
