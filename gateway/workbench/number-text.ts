/** Formats numbers and windows for people. */
import type { Seconds } from '#shared/clock.ts';

export function count(value: number): string {
  return value.toLocaleString('en');
}

/** Formats a number with its noun, such as `1 request` and `2,000 requests`. */
export function counted(value: number, unit: string): string {
  return `${count(value)} ${unit}${value === 1 ? '' : 's'}`;
}

export function windowText(seconds: Seconds): string {
  if (seconds % 86_400 === 0) return `${seconds / 86_400}d`;
  if (seconds % 3600 === 0) return `${seconds / 3600}h`;
  return seconds % 60 === 0 ? `${seconds / 60}m` : `${seconds}s`;
}
