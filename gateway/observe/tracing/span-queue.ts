/**
 * The bound on spans that wait for the collector, and the count of what became of them. It stands around OpenTelemetry's
 * own batches: they say of what they drop only that they do.
 */
import type { Context } from '@opentelemetry/api';
import { type ExportResult, ExportResultCode } from '@opentelemetry/core';
import type { ReadableSpan, Span, SpanExporter, SpanProcessor } from '@opentelemetry/sdk-trace';

export class SpanQueue {
  exported = 0;
  /** There was no room. */
  droppedFull = 0;
  /** The collector did not take them. */
  droppedUnsent = 0;
  #waiting = 0;
  readonly #max: number;
  readonly #onUnsent: (error: Error | undefined) => void;

  /** @param onUnsent the collector did not take a batch */
  constructor(max: number, onUnsent: (error: Error | undefined) => void) {
    this.#max = max;
    this.#onUnsent = onUnsent;
  }

  /** @param inner has room for as many spans as this queue */
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
