/** Blocks the event loop of this process, as a long computation does. Other processes and threads go on. */
import { execFileSync } from 'node:child_process';
import type { Millis } from '#shared/clock.ts';

export function stall(ms: Millis): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}

/** Blocks until a program has ended with 0; it is started again until then. */
export function stallUntil(program: string, args: readonly string[]): void {
  for (;;) {
    try {
      execFileSync(program, args, { stdio: 'ignore' });
      return;
    } catch (error) {
      if (!(error instanceof Error && 'status' in error && typeof error.status === 'number')) throw error;
    }
  }
}
