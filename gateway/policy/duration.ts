import type { Seconds } from '#shared/clock.ts';

const UNITS_SECONDS: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3600, d: 86_400 };

/** @param text a duration whose format has been checked, such as 30s, 1m, 12h or 7d */
export function secondsOf(text: string): Seconds {
  return Number(text.slice(0, -1)) * (UNITS_SECONDS[text.slice(-1)] ?? 0);
}
