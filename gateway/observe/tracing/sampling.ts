import { type Attributes, type Context, type Link, type SpanKind, trace } from '@opentelemetry/api';
import {
  AlwaysOffSampler,
  AlwaysOnSampler,
  ParentBasedSampler,
  type Sampler,
  SamplingDecision,
  type SamplingResult,
  TraceIdRatioBasedSampler,
} from '@opentelemetry/sdk-trace';
import type { Clock, Millis } from '#shared/clock.ts';
import type { TracingSettings } from './settings.ts';

const SECOND_MS: Millis = 1000;
const NOT_RECORDED: SamplingResult = { decision: SamplingDecision.NOT_RECORD };
const RECORDED: SamplingResult = { decision: SamplingDecision.RECORD_AND_SAMPLED };

/** Applies OpenTelemetry's samplers with a limit per second, because clients can ask for recording in `traceparent`. */
export class LimitedSampler implements Sampler {
  readonly #inner: Sampler;
  readonly #perSecondMax: number;
  readonly #clock: Clock;
  #second = 0;
  #inSecond = 0;
  recorded = 0;
  overLimit = 0;

  constructor(settings: Pick<TracingSettings, 'sampler' | 'ratio' | 'perSecondMax'>, clock: Clock) {
    this.#inner = samplerOf(settings);
    this.#perSecondMax = settings.perSecondMax;
    this.#clock = clock;
  }

  shouldSample(
    context: Context,
    traceId: string,
    name: string,
    kind: SpanKind,
    attributes: Attributes,
    links: Link[],
  ): SamplingResult {
    // A local parent is a span inside a recorded request.
    const parent = trace.getSpanContext(context);
    if (parent !== undefined && parent.isRemote !== true) return RECORDED;
    const result = this.#inner.shouldSample(context, traceId, name, kind, attributes, links);
    if (result.decision !== SamplingDecision.RECORD_AND_SAMPLED) return result;
    const second = Math.floor(this.#clock() / SECOND_MS);
    if (second !== this.#second) {
      this.#second = second;
      this.#inSecond = 0;
    }
    if (this.#inSecond >= this.#perSecondMax) {
      this.overLimit++;
      return NOT_RECORDED;
    }
    this.#inSecond++;
    this.recorded++;
    return result;
  }

  toString(): string {
    return `Limited{${this.#inner},${this.#perSecondMax}}`;
  }
}

function samplerOf({ sampler, ratio }: Pick<TracingSettings, 'sampler' | 'ratio'>): Sampler {
  switch (sampler) {
    case 'always_on':
      return new AlwaysOnSampler();
    case 'always_off':
      return new AlwaysOffSampler();
    case 'traceidratio':
      return new TraceIdRatioBasedSampler(ratio);
    case 'parentbased_always_on':
      return new ParentBasedSampler({ root: new AlwaysOnSampler() });
    case 'parentbased_always_off':
      return new ParentBasedSampler({ root: new AlwaysOffSampler() });
    case 'parentbased_traceidratio':
      return new ParentBasedSampler({ root: new TraceIdRatioBasedSampler(ratio) });
    default:
      return sampler satisfies never;
  }
}
