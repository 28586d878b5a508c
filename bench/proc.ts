/**
 * What processes cost, as the kernel counts it. CPU time of a process does not depend on who else wants the cores, as
 * elapsed time does; its unit is the kernel's tick of 10 ms, so a slice should last seconds.
 */
import { readdirSync, readFileSync } from 'node:fs';

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

function withDescendants(pid: number): number[] {
  const found = [pid];
  try {
    for (const thread of readdirSync(`/proc/${pid}/task`)) {
      const children = readFileSync(`/proc/${pid}/task/${thread}/children`, 'utf8').trim();
      if (children !== '') found.push(...children.split(' ').map(Number).flatMap(withDescendants));
    }
  } catch (error) {
    assertGone(error);
  }
  return found;
}

function usageOfOne(pid: number): Usage {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    // The name stands in parentheses and may contain anything; utime and stime are the 12th and 13th field after it.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    const ticks = Number(fields[11]) + Number(fields[12]);
    const rollup = /^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'));
    return { cpuUs: ticks * TICK_US, rssBytes: Number(rollup?.[1] ?? 0) * 1024 };
  } catch (error) {
    assertGone(error);
    return { cpuUs: 0, rssBytes: 0 };
  }
}

/** A process may end between being listed and being read; anything else is a fault. */
function assertGone(error: unknown): void {
  const { code } = error as NodeJS.ErrnoException;
  if (code !== 'ENOENT' && code !== 'ESRCH') throw error;
}
