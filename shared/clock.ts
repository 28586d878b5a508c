/** Milliseconds: a span of time, or a point since the Unix epoch. */
export type Millis = number;
export type Seconds = number;

/** Where time comes from. Only `main.ts` and `test/support` name the real one, so every window edge can be replayed. */
export type Clock = () => Millis;

/** ISO 8601, UTC. */
export function isoTime(at: Millis): string {
  return new Date(Math.round(at)).toISOString();
}
