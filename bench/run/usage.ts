/**
 * Reads from /proc how much CPU time and memory processes and their descendants use. CPU time depends less than elapsed time
 * on who else uses the machine. It is read in nanoseconds, thread by thread: in a slice of a second, Redis works for 30 ms,
 * and the kernel's ticks of 10 ms would be a third of that.
 */
import { readdirSync, readFileSync } from 'node:fs';

export interface Usage {
  readonly cpuUs: number;
  readonly rssMb: number;
}

export interface Memory {
  readonly rssMb: number;
  /** The highest that it ever was, as the kernel remembers it. */
  readonly peakMb: number;
}

/** Adds up all processes. */
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

/** The highest memory that one of the processes ever used. */
export function peakMbOf(pids: readonly number[]): number {
  return Math.max(
    0,
    ...memoryOf(pids)
      .values()
      .map(({ peakMb }) => peakMb),
  );
}

/** Process by process. */
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
  const threads = unlessGone(() => readdirSync(`/proc/${pid}/task`)) ?? [];
  return threads.map((thread) => `/proc/${pid}/task/${thread}`);
}

function read(file: string): string {
  return unlessGone(() => readFileSync(file, 'utf8').trim()) ?? '';
}

/** A process may end after it was listed. Other errors are faults. */
function unlessGone<T>(ask: () => T): T | null {
  try {
    return ask();
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code !== 'ENOENT' && code !== 'ESRCH') throw error;
    return null;
  }
}
