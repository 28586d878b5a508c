/**
 * Waits in tests. They have no deadline, because a slow machine is not a failure: a wait ends when the thing has happened
 * or the process under test has ended. The runner ends a test that hangs, and the log says what that test waited for.
 */
import { setTimeout as delay } from 'node:timers/promises';

const POLL_MS = 10;
const FIRST_REPORT_MS = 60_000;

/** Asks again and again until the answer is yes. */
export async function until(
  isTrue: () => boolean | Promise<boolean>,
  what: string = String(isTrue),
): Promise<void> {
  const stop = reportWhileWaiting(() => what);
  try {
    while (!(await isTrue())) await delay(POLL_MS);
  } finally {
    stop();
  }
}

/**
 * Reports a long wait on stderr: after a minute, then each time that the wait has doubled.
 *
 * @param describe says what the test waits for, and what it has seen so far
 * @returns ends the reports
 */
export function reportWhileWaiting(describe: () => string): () => void {
  let seconds = FIRST_REPORT_MS / 1000;
  const report = (): void => {
    process.stderr.write(`Still waiting after ${seconds} s: ${describe()}\n`);
    timer = setTimeout(report, seconds * 1000).unref();
    seconds *= 2;
  };
  let timer = setTimeout(report, FIRST_REPORT_MS).unref();
  return () => clearTimeout(timer);
}
