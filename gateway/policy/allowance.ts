/** What a policy allows, in words. */
import type { Policy } from './policy.ts';

/** To whom: the policy's limits, or one client's own. */
interface Allowed {
  readonly policy: Policy;
  /** The most that can be used at once. */
  readonly quota: number;
  /** And in a window. */
  readonly perWindow: number;
}

/** @param second how seconds are called: ` seconds` for clients, ` s` for operators */
export function allowanceOf({ policy, quota, perWindow }: Allowed, second: ' seconds' | ' s'): string {
  const { algorithm, windowSeconds } = policy;
  const limit = `${perWindow}${unitOf(policy)}`;
  const window = `${windowSeconds}${second}`;
  switch (algorithm) {
    case 'fixed-window':
      return `${limit} in ${window}`;
    case 'sliding-window':
      return `${limit} in any ${window}`;
    case 'token-bucket':
      return quota === perWindow
        ? `${limit} in ${window}, refilled steadily`
        : `${limit} in ${window}, refilled steadily, and ${quota} at once`;
    case 'concurrency':
      return `${perWindow} in flight at once`;
    default:
      return algorithm satisfies never;
  }
}

/** What is counted where it is not requests; with a space before it. */
export function unitOf({ cost, count }: Policy): string {
  if (cost.kind === 'body-bytes') return ' bytes';
  return count === 'request' ? '' : count === 'failure' ? ' failures' : ' successes';
}
