/** Milliseconds, as a duration or since the Unix epoch. */
export type Millis = number;
export type Seconds = number;

/** Only `main.ts` and `test/support` read the real clock, so that tests can replay any moment. */
export type Clock = () => Millis;
