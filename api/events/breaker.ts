/**
 * Pauses deliveries to webhooks that hang. An attempt at one occupies a place for five seconds. So after a few timeouts
 * in a row there is a pause, and then one attempt to test the receiver. If it answers, the due deliveries are sent. If
 * not, all of them have failed once more (settle.ts).
 *
 * Any answer closes the breaker, even a refusal. Its state belongs to this process, is bounded, and may be lost.
 */
import type { Clock, Millis } from '#shared/clock.ts';

/** Number of timeouts in a row that open the breaker. */
const OPENS_AFTER = 3;
/** The first pause. Each further pause is twice as long, up to the longest. */
const PAUSE_MS: Millis = 10_000;
const PAUSE_MS_MAX: Millis = 60_000;
/** Maximum number of webhooks. The one that has timed out for longest is dropped first. */
const KNOWN_MAX = 10_000;

type BreakerState =
  | 'closed'
  | 'open'
  /** In this state, one attempt may test the receiver. */
  | 'probing';

interface Breaker {
  state(webhookId: string): BreakerState;
  /** Call it when the test begins. @returns a function to call when the test has ended, whatever the result */
  beginProbe(webhookId: string): () => void;
  /** Records the result of an attempt. @returns the state of the webhook */
  record(webhookId: string, isHung: boolean): BreakerState;
}

interface Known {
  hungInARow: number;
  pauseMs: Millis;
  /** Time at which the pause ends; null if the breaker is closed. */
  openUntil: Millis | null;
  isProbed: boolean;
}

export function createBreaker(clock: Clock, knownMax = KNOWN_MAX): Breaker {
  const known = new Map<string, Known>();

  const stateOf = (webhookId: string): BreakerState => {
    const one = known.get(webhookId);
    if (one === undefined || one.openUntil === null) return 'closed';
    const left = one.openUntil - clock();
    // If more than the pause is left, the clock was set back.
    return one.isProbed || (left > 0 && left <= one.pauseMs) ? 'open' : 'probing';
  };

  return {
    state: stateOf,
    beginProbe(webhookId) {
      const one = known.get(webhookId);
      if (one !== undefined) one.isProbed = true;
      return () => {
        if (one !== undefined) one.isProbed = false;
      };
    },
    record(webhookId, isHung) {
      if (!isHung) {
        known.delete(webhookId);
        return 'closed';
      }
      const one = known.get(webhookId) ?? { hungInARow: 0, pauseMs: 0, openUntil: null, isProbed: false };
      if (!known.has(webhookId) && known.size >= knownMax) {
        const oldest = known.keys().next().value;
        if (oldest !== undefined) known.delete(oldest);
      }
      known.set(webhookId, one);
      one.hungInARow += 1;
      // Attempts that began before the breaker opened give no new information.
      if (one.hungInARow >= OPENS_AFTER && (one.openUntil === null || one.isProbed)) {
        one.pauseMs = Math.min(Math.max(one.pauseMs * 2, PAUSE_MS), PAUSE_MS_MAX);
        one.openUntil = clock() + one.pauseMs;
        one.isProbed = false;
      }
      return stateOf(webhookId);
    },
  };
}
