/**
 * Interface of tracing for the data plane. The implementation (open-telemetry.ts) is loaded only if a collector is
 * configured, so a gateway without one pays nothing.
 *
 * A request continues the trace of its `traceparent` or starts a new one. Its span has two children: the wait for the
 * store and the call of the application, which gets that span's id as parent. A request that is not recorded is
 * forwarded as not sampled, so that nothing behind the gateway is recorded either.
 */
import type { Sample } from '#gateway/part/sample.ts';
import type { Millis } from '#shared/clock.ts';

export interface Tracing {
  begin(method: string, rawHeaders: readonly string[], at: Millis): RequestTrace;
  samples(): Sample[];
  /** Exports the queue, for at most a second. */
  close(): Promise<void>;
}

export interface RequestTrace {
  readonly isRecorded: boolean;
  /** 32 hexadecimal digits. */
  readonly traceId: string;
  /** Called when the request is forwarded. @param headers for the upstream; `traceparent` is replaced in place */
  forward(headers: string[], at: Millis): void;
  /** Call once, and only if the request is recorded. */
  end(ended: EndedRequest): void;
}

export interface EndedRequest {
  readonly method: string;
  /** The canonical path, without the query. */
  readonly path: string;
  readonly scheme: 'http' | 'https';
  /** Path pattern of the denying or tightest policy; null if no policy applies. */
  readonly route: string | null;
  /** Status of the reply; null if the client left before a reply began. */
  readonly status: number | null;
  readonly decision: string;
  readonly decisionId: string | null;
  readonly policy: string | null;
  readonly policies: readonly string[];
  readonly store: StoreWait | null;
  readonly repliedAt: Millis | null;
  readonly endedAt: Millis;
  /** Whether the reply was cut off. */
  readonly isCut: boolean;
}

export interface StoreWait {
  readonly askedAt: Millis;
  readonly answeredAt: Millis;
  /** Whether the store did not answer, so that `onStoreFailure` decided. */
  readonly hasFailed: boolean;
}
