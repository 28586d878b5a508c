/** The order in which requests get a place at the application when places are scarce. */
export const PRIORITIES = ['high', 'normal', 'low'] as const;

export type Priority = (typeof PRIORITIES)[number];

/** Requests that wait together. */
export interface Lane {
  readonly priority: Priority;
  /** Whether others of the same priority go first. */
  readonly isBehind: boolean;
  /** Refusals call the client by this name, if it is set. */
  readonly as?: string | undefined;
}

/** @returns the highest of the given priorities; normal if there is none */
export function highestOf(named: readonly (Priority | null)[]): Priority {
  return PRIORITIES.find((priority) => named.includes(priority)) ?? 'normal';
}
