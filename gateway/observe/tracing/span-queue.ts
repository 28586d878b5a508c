/**
 * Limits the number of spans that wait for export and counts exported and dropped ones. OpenTelemetry's batch processor
 * does not count what it drops.
 */
import type { Context } from '@opentelemetry/api';
import { type ExportResult, ExportResultCode } from '@opentelemetry/core';
import type { ReadableSpan, Span, SpanExporter, SpanProcessor } from '@opentelemetry/sdk-trace';

export class SpanQueue {
  exported = 0;
  droppedFull = 0;
  droppedUnsent = 0;
  #waiting = 0;
  readonly #max: number;
  readonly #onUnsent: (error: Error | undefined) => void;

  constructor(max: number, onUnsent: (error: Error | undefined) => void) {
    this.#max = max;
    this.#onUnsent = onUnsent;
  }

  /** @param inner must have room for as many spans */
  bounded(inner: SpanProcessor): SpanProcessor {
    return {
      onStart: (span: Span, context: Context) => inner.onStart(span, context),
      onEnd: (span: ReadableSpan) => {
        if (this.#waiting >= this.#max) {
          this.droppedFull++;
          return;
        }
        this.#waiting++;
        inner.onEnd(span);
      },
      forceFlush: () => inner.forceFlush(),
      shutdown: () => inner.shutdown(),
    };
  }

  counted(inner: SpanExporter): SpanExporter {
    return {
      export: (spans: ReadableSpan[], done: (result: ExportResult) => void) => {
        this.#waiting -= spans.length;
        inner.export(spans, (result) => {
          if (result.code === ExportResultCode.SUCCESS) this.exported += spans.length;
          else {
            this.droppedUnsent += spans.length;
            this.#onUnsent(result.error);
          }
          done(result);
        });
      },
      shutdown: () => inner.shutdown(),
    };
  }
}
