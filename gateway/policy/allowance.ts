import { unitOfSeconds } from '#gateway/algorithms/calendar.ts';
import type { Seconds } from '#shared/clock.ts';
import type { Algorithm, Policy } from './policy.ts';

/** A policy with the limit of one client: its own or an override. */
interface Allowed {
  readonly policy: Policy;
  /** Maximum number of units in use at once. */
  readonly quota: number;
  readonly perWindow: number;
}

/** @param second unit behind a number of seconds: ` seconds` for clients, ` s` for operators */
export function allowanceOf({ policy, quota, perWindow }: Allowed, second: ' seconds' | ' s'): string {
  const { algorithm, windowSeconds } = policy;
  const limit = `${perWindow}${unitOf(policy)}`;
  const window = `${windowSeconds}${second}`;
  switch (algorithm) {
    case 'fixed-window':
      return `${limit} in ${window}`;
    case 'calendar-window':
      return `${limit} in ${spanText(policy)} (${policy.calendar?.timezone})`;
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

interface Span {
  readonly algorithm: Algorithm;
  readonly windowSeconds: Seconds;
}

/** Formats the window for operators: `60 s` or `a calendar month`; `at once` if requests in flight are counted. */
export function spanText({ algorithm, windowSeconds }: Span): string {
  if (algorithm === 'concurrency') return 'at once';
  return algorithm === 'calendar-window'
    ? `a calendar ${unitOfSeconds(windowSeconds)}`
    : `${windowSeconds} s`;
}

/** Returns the unit that is counted, with a leading space; '' for plain requests. */
export function unitOf({ cost, count }: Policy): string {
  if (cost.kind === 'body-bytes') return ' bytes';
  return count === 'request' ? '' : count === 'failure' ? ' failures' : ' successes';
}
