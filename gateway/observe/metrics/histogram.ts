import type { Sample } from '#gateway/part/sample.ts';
import type { Millis } from '#shared/clock.ts';

/** Upper bounds in seconds: fine for the gateway's own work, coarse for the upstream's. */
const BOUNDS_SECONDS: readonly number[] = [
  0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10,
];
const BOUNDS_MS = Float64Array.from(BOUNDS_SECONDS, (seconds) => seconds * 1000);

export class Histogram {
  readonly #name: string;
  readonly #help: string;
  /** Count for each bound, not cumulative; the last one is for larger values. */
  readonly #counts = new Float64Array(BOUNDS_MS.length + 1);
  #sumMs = 0;

  constructor(name: string, help: string) {
    this.#name = name;
    this.#help = help;
  }

  observe(ms: Millis): void {
    this.#sumMs += ms;
    let i = 0;
    while (ms > (BOUNDS_MS[i] ?? Number.POSITIVE_INFINITY)) i++;
    this.#counts[i] = (this.#counts[i] ?? 0) + 1;
  }

  samples(): Sample[] {
    let count = 0;
    const buckets = [...BOUNDS_SECONDS.map(String), '+Inf'].map((le, i) => {
      count += this.#counts[i] ?? 0;
      return this.#sample('_bucket', count, { le });
    });
    return [...buckets, this.#sample('_sum', this.#sumMs / 1000), this.#sample('_count', count)];
  }

  #sample(suffix: Sample['suffix'] & string, value: number, labels: Sample['labels'] = {}): Sample {
    return { name: this.#name, help: this.#help, type: 'histogram', labels, value, suffix };
  }
}
