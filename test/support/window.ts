/** Provides windows of the wall clock that do not end during a test, however slow the machine is. */
import { setTimeout as delay } from 'node:timers/promises';

const DAYS = 366;
/** The longest window of a policy, as in a policy file and in seconds. It ends about once a year. */
export const LONG_WINDOW = `${DAYS}d`;
export const LONG_WINDOW_SECONDS = DAYS * 86_400;
/** The runner ends a test that is silent for half an hour. */
const ROOM_MS = 4 * 60_000;
/** The clocks of two processes differ by less than this. */
const MARGIN_MS = 20;

/**
 * Waits until the window has ended, if its end is near.
 *
 * @param windowMs that of the long window by default
 * @param roomMs longer than the test takes, shorter than the runner's patience
 */
export async function insideLongWindow(
  windowMs = LONG_WINDOW_SECONDS * 1000,
  roomMs = ROOM_MS,
): Promise<void> {
  const leftMs = windowMs - (Date.now() % windowMs);
  if (leftMs < roomMs) await delay(leftMs + MARGIN_MS);
}

/**
 * For a policy whose window is given. Runs `ask` again in the next window if the window has ended meanwhile.
 *
 * @param ask begins with a client that has used nothing in the present window
 * @returns what the last run returned, all of it within one window
 */
export async function inOneWindow<T>(windowMs: number, ask: () => Promise<T>): Promise<T> {
  for (;;) {
    const begun = Date.now() - MARGIN_MS;
    const result = await ask();
    const leftMs = windowMs - (begun % windowMs);
    if (Date.now() + MARGIN_MS < begun + leftMs) return result;
    await nextWindow(windowMs);
  }
}

/** Waits for the beginning of a window. */
export async function nextWindow(windowMs: number): Promise<void> {
  await delay(windowMs - (Date.now() % windowMs) + MARGIN_MS);
}
