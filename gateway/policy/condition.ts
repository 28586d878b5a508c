/**
 * Conditions of a policy besides its route. A policy applies to a request if its route matches and all of its
 * conditions hold. `unless` is none of them, because only the limiter knows whether a key is proven.
 */
/** The parts of a request that conditions look at. */
export interface Asked {
  readonly method: string;
  /** All readings of the path, the plain one first. */
  readonly paths: readonly string[];
  /** The path and query that are forwarded. */
  readonly target: string;
  /** Alternating names and values. */
  readonly rawHeaders: readonly string[];
  /** The canonical host; empty if no policy depends on it. */
  readonly host: string;
}

export interface Condition {
  /** Why the policy does not apply, such as `the query has no parameter page`. */
  readonly unmet: string;
  holds(asked: Asked): boolean;
}

/** The keys that are conditions. */
const CONDITIONS = ['hosts', 'userAgent', 'query', 'except'] as const;

export type Conditions = { readonly [K in (typeof CONDITIONS)[number]]: Condition | null };

export function isConditional(policy: Conditions): boolean {
  return CONDITIONS.some((key) => policy[key] !== null);
}

/** Whether a request that meets the conditions of one policy meets those of the other. */
export function areImpliedBy(others: Conditions, policy: Conditions): boolean {
  return CONDITIONS.every((key) => others[key] === null || others[key].unmet === policy[key]?.unmet);
}

/** @returns why the policy does not apply; null if it does */
export function unmetOf(policy: Conditions, asked: Asked): string | null {
  for (const key of CONDITIONS) {
    const condition = policy[key];
    if (condition !== null && !condition.holds(asked)) return condition.unmet;
  }
  return null;
}
