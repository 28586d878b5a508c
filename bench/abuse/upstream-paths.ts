/** What the clients of the bench's upstream need to know of it. */

/** Set by the victim; whatever lacks it is the attacker's. */
export const VICTIM_HEADER = 'x-bench-victim';
export const STATS_PATH = '/bench/stats';
/** What a request shall be counted as: names separated by commas. */
export const COUNT_HEADER = 'x-bench-count';
/** Tells the counts by name, and forgets them. */
export const COUNTS_PATH = '/bench/counts';

export interface UpstreamStats {
  /** Requests of the attacker that came through. */
  admitted: number;
  /** Those among them that carried a header which no gateway should pass. */
  smuggled: number;
}
