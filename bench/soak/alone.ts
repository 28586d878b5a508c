/**
 * What may differ from the limits while the gateway counts alone. That happens not only when the soak troubles Redis: on
 * a busy machine its answers come too late as well. The gateway says for how many requests.
 *
 * A request may then be denied too early: another of several processes had a share left, or Redis had charged it before
 * its answer came too late. And too many may be admitted: a process that had not seen a counter before cannot know what
 * was spent of it, and admits its share once more (docs/operating.md). One process alone knows all.
 */

export interface Alone {
  /** Processes. */
  readonly workers: number;
  /** Requests of this minute that were decided without Redis. */
  readonly degraded: number;
}

/** @returns how many of the denials before a limit was reached have no explanation: one for each such request */
export function unexplainedDenials(early: number, { degraded }: Alone): number {
  return Math.max(0, early - degraded);
}

/** @returns the most that may be admitted: beside the limit, the shares of all processes but one */
export function admittedMax(limit: number, { workers, degraded }: Alone): number {
  return degraded === 0 ? limit : 2 * limit - Math.floor(limit / workers);
}
