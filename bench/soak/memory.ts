/** Memory over time: a line through the second half of the samples tells what an hour would add. */
import { peakRssBytesOf, usageOf } from '../proc.ts';

const SAMPLE_MS = 5000;

export interface MemoryFigures {
  readonly peakMb: number;
  readonly endMb: number;
  readonly slopeMbPerHour: number;
}

interface Sample {
  readonly atMs: number;
  readonly mb: number;
}

/** @returns ends it. Peak: of one process; the others: of all of them together. */
export function watchMemory(pid: number): () => MemoryFigures {
  const samples: Sample[] = [];
  const take = (): void =>
    void samples.push({ atMs: performance.now(), mb: usageOf([pid]).rssBytes / 1_048_576 });
  take();
  const timer = setInterval(take, SAMPLE_MS);
  return () => {
    clearInterval(timer);
    take();
    return {
      peakMb: peakRssBytesOf([pid]) / 1_048_576,
      endMb: samples.at(-1)?.mb ?? 0,
      slopeMbPerHour: slope(samples.slice(Math.floor(samples.length / 2))) * 3_600_000,
    };
  };
}

/** Least squares, in MB a millisecond. */
function slope(samples: readonly Sample[]): number {
  const meanAt = samples.reduce((sum, { atMs }) => sum + atMs, 0) / samples.length;
  const meanMb = samples.reduce((sum, { mb }) => sum + mb, 0) / samples.length;
  const square = samples.reduce((sum, { atMs }) => sum + (atMs - meanAt) ** 2, 0);
  const product = samples.reduce((sum, { atMs, mb }) => sum + (atMs - meanAt) * (mb - meanMb), 0);
  return square === 0 ? 0 : product / square;
}
