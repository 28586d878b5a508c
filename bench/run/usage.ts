/**
 * Reads from /proc how much CPU time and memory processes use. CPU time depends less than elapsed time on who else uses
 * the machine. It is read in nanoseconds, thread by thread: in a slice of a second, Redis works for 30 ms, and the
 * kernel's ticks of 10 ms would be a third of that.
 */
import { readdirSync, readFileSync } from 'node:fs';

export const MB = 1_048_576;

export interface Usage {
  readonly cpuUs: number;
  readonly rssBytes: number;
}

/** Adds up these processes and all their descendants. */
export function usageOf(pids: readonly number[]): Usage {
  let cpuUs = 0;
  let rssBytes = 0;
  for (const pid of withDescendants(pids)) {
    for (const thread of threadsOf(pid))
      cpuUs += Number(read(`${thread}/schedstat`).split(' ')[0] ?? 0) / 1000;
    rssBytes += statusBytes(pid, 'VmRSS');
  }
  return { cpuUs, rssBytes };
}

/** The highest memory that one of these processes or their descendants ever used, as the kernel remembers it. */
export function peakRssBytesOf(pids: readonly number[]): number {
  return Math.max(0, ...[...withDescendants(pids)].map((pid) => statusBytes(pid, 'VmHWM')));
}

function withDescendants(pids: readonly number[]): ReadonlySet<number> {
  const found = new Set(pids);
  for (const pid of found) {
    for (const thread of threadsOf(pid)) {
      for (const child of read(`${thread}/children`).split(' ')) if (child !== '') found.add(Number(child));
    }
  }
  return found;
}

function threadsOf(pid: number): readonly string[] {
  const threads = unlessGone(() => readdirSync(`/proc/${pid}/task`)) ?? [];
  return threads.map((thread) => `/proc/${pid}/task/${thread}`);
}

function statusBytes(pid: number, field: string): number {
  return (
    Number(new RegExp(`^${field}:\\s+(\\d+) kB`, 'm').exec(read(`/proc/${pid}/status`))?.[1] ?? 0) * 1024
  );
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
