/**
 * Reads from /proc the CPU time and the memory of processes and their descendants. CPU time depends less than elapsed
 * time on other programs on the machine. It is read in nanoseconds for each thread. The kernel's ticks of 10 ms would
 * be too coarse: Redis works for only 30 ms in a second.
 */
import { readdirSync, readFileSync } from 'node:fs';

export interface Usage {
  readonly cpuUs: number;
  readonly rssMb: number;
}

export interface Memory {
  readonly rssMb: number;
  /** The highest value since the start of the process, from the kernel. */
  readonly peakMb: number;
}

/** Returns the sum of the usage of all processes. */
export function usageOf(pids: readonly number[]): Usage {
  let cpuUs = 0;
  let rssMb = 0;
  for (const [pid, memory] of memoryOf(pids)) {
    for (const thread of threadsOf(pid))
      cpuUs += Number(read(`${thread}/schedstat`).split(' ')[0] ?? 0) / 1000;
    rssMb += memory.rssMb;
  }
  return { cpuUs, rssMb };
}

/** Returns the highest memory that any of the processes has used since its start. */
export function peakMbOf(pids: readonly number[]): number {
  return Math.max(
    0,
    ...memoryOf(pids)
      .values()
      .map(({ peakMb }) => peakMb),
  );
}

/** Returns the memory of each process and its descendants, by pid. */
export function memoryOf(pids: readonly number[]): ReadonlyMap<number, Memory> {
  const found = new Map<number, Memory>();
  const all = new Set(pids);
  for (const pid of all) {
    const status = read(`/proc/${pid}/status`);
    const mb = (field: string): number =>
      Number(new RegExp(`^${field}:\\s+(\\d+) kB`, 'm').exec(status)?.[1] ?? 0) / 1024;
    found.set(pid, { rssMb: mb('VmRSS'), peakMb: mb('VmHWM') });
    for (const thread of threadsOf(pid))
      for (const child of read(`${thread}/children`).split(' ')) if (child !== '') all.add(Number(child));
  }
  return found;
}

function threadsOf(pid: number): readonly string[] {
  return unlessGone(() => readdirSync(`/proc/${pid}/task`), []).map(
    (thread) => `/proc/${pid}/task/${thread}`,
  );
}

function read(file: string): string {
  return unlessGone(() => readFileSync(file, 'utf8').trim(), '');
}

/** @param gone the result if the process has ended since it was listed */
function unlessGone<T>(ask: () => T, gone: T): T {
  try {
    return ask();
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code !== 'ENOENT' && code !== 'ESRCH') throw error;
    return gone;
  }
}
