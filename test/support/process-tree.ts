/** A process with all that it started, as /proc tells it. */
import { readdirSync, readFileSync } from 'node:fs';

/** Of the times in /proc, by the kernel's promise to programs. */
export const MS_PER_TICK = 10;
const SIGNAL = 'SIGKILL';

/** The process and its descendants; empty when it is gone. */
export function treeOf(pid: number): readonly number[] {
  try {
    const tasks = readdirSync(`/proc/${pid}/task`);
    const children = tasks.flatMap((task) =>
      readFileSync(`/proc/${pid}/task/${task}/children`, 'latin1').split(' ').filter(Boolean).map(Number),
    );
    return [pid, ...children.flatMap(treeOf)];
  } catch {
    return [];
  }
}

/** Milliseconds of processor time that they have used, with those of their children that have ended. */
export function processorTime(pids: readonly number[]): number {
  return pids.reduce((sum, pid) => sum + timeOf(pid), 0);
}

/** Ends them at once, the outer ones first, so that none starts another. */
export function endTree(pid: number): void {
  for (const one of treeOf(pid)) {
    try {
      process.kill(one, SIGNAL);
    } catch {
      // It has ended meanwhile.
    }
  }
}

function timeOf(pid: number): number {
  try {
    // The name of the program, in parentheses, may hold spaces.
    const fields = readFileSync(`/proc/${pid}/stat`, 'latin1').split(') ').at(-1)?.split(' ') ?? [];
    return fields.slice(11, 15).reduce((sum, ticks) => sum + Number(ticks), 0) * MS_PER_TICK;
  } catch {
    return 0;
  }
}
