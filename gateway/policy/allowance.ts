import { ALGORITHMS } from '#gateway/algorithms/table.ts';
import { countsBytes, type Policy } from './policy.ts';

/** A policy with the limit of one client: its own or an override. */
export interface Allowed {
  readonly policy: Policy;
  /** Maximum number of units in use at once. */
  readonly capacity: number;
  readonly limit: number;
}

/** @param second unit behind a number of seconds: ` seconds` for clients, ` s` for operators */
export function allowanceOf({ policy, capacity, limit }: Allowed, second: ' seconds' | ' s'): string {
  const { algorithm, windowSeconds, calendar } = policy;
  return ALGORITHMS[algorithm].allowance({
    limit: `${limit}${unitOf(policy)}`,
    window: calendar === null ? `${windowSeconds}${second}` : ALGORITHMS[algorithm].span(windowSeconds),
    capacity: capacity === limit ? null : capacity,
    timezone: calendar?.timezone ?? null,
  });
}

/** Returns the unit that is counted, with a leading space; '' for plain requests. */
export function unitOf(policy: Policy): string {
  if (policy.distinct !== null) return ' different values';
  if (countsBytes(policy)) return ' bytes';
  const { count } = policy;
  return count === 'request' ? '' : count === 'failure' ? ' failures' : ' successes';
}
