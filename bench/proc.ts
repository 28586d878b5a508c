/**
 * What processes cost, as the kernel counts it. CPU time of a process does not depend on who else wants the cores, as
 * elapsed time does. It is read in nanoseconds, thread by thread: in a slice of a second a Redis under our gateway works
 * for 30 ms, and the ticks of 10 ms that the kernel counts for a whole process would be a third of that.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs';

const NS_PER_US = 1000;
const TICK_US = 10_000;

export interface Usage {
  readonly cpuUs: number;
  readonly rssBytes: number;
}

/** Linux only: there is no /proc elsewhere. */
export function canMeasure(): boolean {
  return process.platform === 'linux';
}

/** Of these processes and all their descendants together. */
export function usageOf(pids: readonly number[]): Usage {
  let cpuUs = 0;
  let rssBytes = 0;
  for (const pid of new Set(pids.flatMap(withDescendants))) {
    const one = usageOfOne(pid);
    cpuUs += one.cpuUs;
    rssBytes += one.rssBytes;
  }
  return { cpuUs, rssBytes };
}

/** The most memory that one process of these and their descendants ever had, as the kernel remembers it. */
export function peakRssBytesOf(pids: readonly number[]): number {
  return Math.max(0, ...new Set(pids.flatMap(withDescendants)).values().map(peakRssBytesOfOne));
}

function peakRssBytesOfOne(pid: number): number {
  try {
    return Number(/^VmHWM:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0) * 1024;
  } catch (error) {
    assertGone(error);
    return 0;
  }
}

function withDescendants(pid: number): number[] {
  const found = [pid];
  try {
    for (const thread of threadsOf(pid)) {
      const children = readFileSync(`${thread}/children`, 'utf8').trim();
      if (children !== '') found.push(...children.split(' ').map(Number).flatMap(withDescendants));
    }
  } catch (error) {
    assertGone(error);
  }
  return found;
}

function threadsOf(pid: number): string[] {
  return readdirSync(`/proc/${pid}/task`).map((thread) => `/proc/${pid}/task/${thread}`);
}

function usageOfOne(pid: number): Usage {
  try {
    const rss = /^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'));
    return { cpuUs: preciseCpuUs(pid) ?? tickedCpuUs(pid), rssBytes: Number(rss?.[1] ?? 0) * 1024 };
  } catch (error) {
    assertGone(error);
    return { cpuUs: 0, rssBytes: 0 };
  }
}

/** Of the threads that live: servers keep theirs. null where the kernel was built without these figures. */
function preciseCpuUs(pid: number): number | null {
  let cpuUs = 0;
  for (const thread of threadsOf(pid)) {
    let text: string;
    try {
      text = readFileSync(`${thread}/schedstat`, 'utf8');
    } catch (error) {
      if (existsSync(thread)) return null;
      assertGone(error);
      continue;
    }
    cpuUs += Number(text.split(' ')[0]) / NS_PER_US;
  }
  return cpuUs;
}

function tickedCpuUs(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  // The name stands in parentheses and may contain anything; utime and stime are the 12th and 13th field after it.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return (Number(fields[11]) + Number(fields[12])) * TICK_US;
}

/** A process may end between being listed and being read; anything else is a fault. */
function assertGone(error: unknown): void {
  const { code } = error as NodeJS.ErrnoException;
  if (code !== 'ENOENT' && code !== 'ESRCH') throw error;
}
