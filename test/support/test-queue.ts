/** What a run has still to do, in its order; what needs programs that are being installed comes when they are there. */
import type { Program } from './servers.ts';
import type { TestDatabase } from './system-folders.ts';

/** Files that share a process. */
export interface Task {
  readonly files: readonly string[];
  readonly database: TestDatabase;
  readonly programs: readonly Program[];
}

export interface TestQueue {
  /** @returns null once all are taken */
  next(): Promise<Task | null>;
}

/** @param installing resolves once `absent` are installed, or never will be */
export function testQueue(
  tasks: readonly Task[],
  absent: readonly Program[],
  installing: Promise<void>,
): TestQueue {
  const waiting = [...tasks];
  let isSettled = absent.length === 0;
  const settled = installing.then(() => {
    isSettled = true;
  });
  const isReady = ({ programs }: Task): boolean =>
    isSettled || !programs.some((program) => absent.includes(program));
  return {
    async next() {
      const at = waiting.findIndex(isReady);
      if (at >= 0) return waiting.splice(at, 1)[0] ?? null;
      if (waiting.length === 0) return null;
      await settled;
      return this.next();
    },
  };
}
