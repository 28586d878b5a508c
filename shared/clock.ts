/** Milliseconds, as a duration or since the Unix epoch. */
export type Millis = number;
export type Seconds = number;

/** Only `main.ts` and `test/support` read the real clock, so that tests can replay any moment. */
export type Clock = () => Millis;

/** Returns the time in ISO 8601, UTC. */
export function isoTime(at: Millis): string {
  return new Date(Math.round(at)).toISOString();
}
