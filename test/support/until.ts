import { setTimeout as delay } from 'node:timers/promises';

/** Asks again and again until the answer is yes. @throws after the deadline, which only a failed test reaches */
export async function until(isTrue: () => boolean | Promise<boolean>, deadlineMs = 30_000): Promise<void> {
  const end = performance.now() + deadlineMs;
  while (!(await isTrue())) {
    if (performance.now() > end) throw new Error(`not within ${deadlineMs} ms: ${isTrue}`);
    await delay(10);
  }
}
