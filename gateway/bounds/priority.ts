/** The order in which requests get a place at the application while not all can have one. */
export const PRIORITIES = ['high', 'normal', 'low'] as const;

export type Priority = (typeof PRIORITIES)[number];

/** @returns the highest one that is named; normal if none is */
export function highestOf(named: readonly (Priority | null)[]): Priority {
  return PRIORITIES.find((priority) => named.includes(priority)) ?? 'normal';
}
