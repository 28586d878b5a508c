/**
 * Tells when the clock may have been set back, so that stored times of work lie too far ahead. Processes whose clocks
 * differ a little share the work, so small steps do not count.
 */
import type { Clock, Millis } from '#shared/clock.ts';

export const STEP_MS: Millis = 60_000;

/** @returns a function that is true at its first call, because nothing is known of the time before, and after a step back */
export function watchClock(clock: Clock): () => boolean {
  let latest = Number.POSITIVE_INFINITY;
  return () => {
    const now = clock();
    const isBack = now < latest - STEP_MS;
    latest = isBack ? now : Math.max(latest, now);
    return isBack;
  };
}
