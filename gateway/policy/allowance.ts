/** What a policy allows, in words. */
import type { Policy } from './policy.ts';

/** @param second how seconds are called: ` seconds` for clients, ` s` for operators */
export function allowanceOf(
  { algorithm, limit, capacity, windowSeconds }: Policy,
  second: ' seconds' | ' s',
): string {
  const window = `${windowSeconds}${second}`;
  switch (algorithm) {
    case 'fixed-window':
      return `${limit} in ${window}`;
    case 'sliding-window':
      return `${limit} in any ${window}`;
    case 'token-bucket':
      return capacity === limit
        ? `${limit} in ${window}, refilled steadily`
        : `${limit} in ${window}, refilled steadily, and ${capacity} at once`;
    default:
      return algorithm satisfies never;
  }
}
