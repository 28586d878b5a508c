/**
 * Waits in tests. They have no deadline, because a slow machine is not a failure: a wait ends when the thing has happened
 * or the process under test has ended. The runner ends a test that hangs, and the log says what that test waited for.
 */
import { setTimeout as delay } from 'node:timers/promises';

const POLL_MS = 10;
const FIRST_REPORT_MS = 60_000;

/** A process that a wait depends on, such as `Started`. */
interface Actor {
  output(): string;
  ended(): Promise<unknown>;
}

/**
 * Calls repeatedly until the result is true.
 *
 * @param actor the process without which the result stays false
 * @throws Error if that process has ended before
 */
export async function until(
  isTrue: () => boolean | Promise<boolean>,
  what: string = String(isTrue),
  actor?: Actor,
): Promise<void> {
  let hasEnded = false;
  void actor?.ended().then(() => {
    hasEnded = true;
  });
  const stopReports = reportWhileWaiting(() => what);
  try {
    for (;;) {
      const wasOver = hasEnded;
      if (await isTrue()) return;
      if (wasOver) throw new Error(`The process ended before: ${what}. Output:\n${actor?.output()}`);
      await delay(POLL_MS);
    }
  } finally {
    stopReports();
  }
}

/**
 * Reports a long wait on stderr, and again each time that the wait has doubled.
 *
 * @param describe says what the test waits for, and what it has seen so far
 * @returns ends the reports
 */
export function reportWhileWaiting(describe: () => string, firstMs = FIRST_REPORT_MS): () => void {
  let waitedMs = firstMs;
  const report = (): void => {
    process.stderr.write(`Still waiting after ${waitedMs / 1000} s: ${describe()}\n`);
    timer = setTimeout(report, waitedMs).unref();
    waitedMs *= 2;
  };
  let timer = setTimeout(report, firstMs).unref();
  return () => clearTimeout(timer);
}
