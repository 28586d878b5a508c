/** What a policy allows, in words. */
import type { Policy } from './policy.ts';

/** @param second how seconds are called: ` seconds` for clients, ` s` for operators */
export function allowanceOf(policy: Policy, second: ' seconds' | ' s'): string {
  const { algorithm, capacity, windowSeconds } = policy;
  const limit = `${policy.limit}${unitOf(policy)}`;
  const window = `${windowSeconds}${second}`;
  switch (algorithm) {
    case 'fixed-window':
      return `${limit} in ${window}`;
    case 'sliding-window':
      return `${limit} in any ${window}`;
    case 'token-bucket':
      return capacity === policy.limit
        ? `${limit} in ${window}, refilled steadily`
        : `${limit} in ${window}, refilled steadily, and ${capacity} at once`;
    default:
      return algorithm satisfies never;
  }
}

/** What is counted where it is not requests; with a space before it. */
export function unitOf({ cost, count }: Policy): string {
  if (cost.kind === 'body-bytes') return ' bytes';
  return count === 'request' ? '' : count === 'failure' ? ' failures' : ' successes';
}
