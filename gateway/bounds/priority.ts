/** The order in which requests get a place at the application when places are scarce. */
export const PRIORITIES = ['high', 'normal', 'low'] as const;

export type Priority = (typeof PRIORITIES)[number];

/** @returns the highest of the given priorities; normal if there is none */
export function highestOf(named: readonly (Priority | null)[]): Priority {
  return PRIORITIES.find((priority) => named.includes(priority)) ?? 'normal';
}
