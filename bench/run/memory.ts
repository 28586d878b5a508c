/** Samples the memory of processes. A line through the second half of the samples gives the growth in an hour. */
import { rounded } from './report.ts';
import { memoryOf } from './usage.ts';

const SAMPLE_MS = 5000;
const HOUR_MS = 3_600_000;

interface Sample {
  readonly atMs: number;
  readonly rssMb: number;
  readonly peakMb: number;
}

/** Samples a process and its descendants. @returns a function that stops, and returns a table row for each process */
export function watchMemory(pid: number): () => readonly (readonly string[])[] {
  const samples = new Map<number, Sample[]>();
  const take = (): void => {
    const atMs = performance.now();
    for (const [one, memory] of memoryOf([pid])) {
      const all = samples.get(one) ?? [];
      samples.set(one, all);
      if (memory.rssMb > 0) all.push({ atMs, ...memory });
    }
  };
  take();
  const timer = setInterval(take, SAMPLE_MS);
  return () => {
    clearInterval(timer);
    take();
    return [...samples].map(([one, all]) => {
      const last = all.at(-1) ?? { rssMb: 0, peakMb: 0 };
      const slope = slopeOf(all.slice(Math.floor(all.length / 2))) * HOUR_MS;
      const figures = `${rounded(last.rssMb, 0)} MB at the end, peak ${rounded(last.peakMb, 0)} MB`;
      return [`memory of ${one}`, `${figures}, slope of the second half ${rounded(slope, 1)} MB/hour`];
    });
  };
}

/** Returns the slope of the least-squares line, in MB per millisecond. */
function slopeOf(samples: readonly Sample[]): number {
  const mean = (pick: (sample: Sample) => number): number =>
    samples.reduce((sum, sample) => sum + pick(sample), 0) / samples.length;
  const meanAt = mean(({ atMs }) => atMs);
  const meanMb = mean(({ rssMb }) => rssMb);
  const square = mean(({ atMs }) => (atMs - meanAt) ** 2);
  return square === 0 ? 0 : mean(({ atMs, rssMb }) => (atMs - meanAt) * (rssMb - meanMb)) / square;
}
