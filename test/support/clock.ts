import type { Clock, Millis } from '#shared/clock.ts';

export interface TestClock {
  readonly now: Clock;
  advance(ms: Millis): void;
}

/** A clock that stands still until it is told to move. */
export function testClock(start: Millis = Date.UTC(2026, 0, 1)): TestClock {
  let time = start;
  return {
    now: () => time,
    advance(ms) {
      time += ms;
    },
  };
}
