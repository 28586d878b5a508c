/** Memory over time. A line through the second half of the samples says how much it would grow in an hour. */
import { MB, peakRssBytesOf, usageOf } from './usage.ts';

const SAMPLE_MS = 5000;
const HOUR_MS = 3_600_000;

interface Sample {
  readonly atMs: number;
  readonly mb: number;
}

/** Samples the memory of a process and its descendants. @returns ends it, and describes what it saw */
export function watchMemory(pid: number): () => string {
  const samples: Sample[] = [];
  const take = (): void => void samples.push({ atMs: performance.now(), mb: usageOf([pid]).rssBytes / MB });
  take();
  const timer = setInterval(take, SAMPLE_MS);
  return () => {
    clearInterval(timer);
    take();
    const slope = slopeOf(samples.slice(Math.floor(samples.length / 2))) * HOUR_MS;
    const peak = peakRssBytesOf([pid]) / MB;
    const end = samples.at(-1)?.mb ?? 0;
    return `${end.toFixed(0)} MB at the end, peak of one process ${peak.toFixed(0)} MB, slope of the second half ${slope.toFixed(0)} MB/hour`;
  };
}

/** Least squares, in MB a millisecond. */
function slopeOf(samples: readonly Sample[]): number {
  const mean = (pick: (sample: Sample) => number): number =>
    samples.reduce((sum, sample) => sum + pick(sample), 0) / samples.length;
  const meanAt = mean(({ atMs }) => atMs);
  const meanMb = mean(({ mb }) => mb);
  const square = mean(({ atMs }) => (atMs - meanAt) ** 2);
  return square === 0 ? 0 : mean(({ atMs, mb }) => (atMs - meanAt) * (mb - meanMb)) / square;
}
