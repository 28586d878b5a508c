import type { Millis } from '#shared/clock.ts';

/** Upper bounds in seconds: fine for the gateway's own work, coarse for the upstream's. */
export const DURATION_BOUNDS_SECONDS: readonly number[] = [
  0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10,
];
const BOUNDS_MS = Float64Array.from(DURATION_BOUNDS_SECONDS, (seconds) => seconds * 1000);

/** @returns the index of the first bound that is not smaller; behind the last one for larger values */
function bucketOf(ms: Millis): number {
  let i = 0;
  while (i < BOUNDS_MS.length && ms > (BOUNDS_MS[i] ?? 0)) i++;
  return i;
}

export class Histogram {
  /** Count for each bound, not cumulative; the last one is for larger values. */
  readonly counts = new Float64Array(BOUNDS_MS.length + 1);
  sumMs = 0;

  observe(ms: Millis): void {
    this.sumMs += ms;
    const i = bucketOf(ms);
    this.counts[i] = (this.counts[i] ?? 0) + 1;
  }
}
