/**
 * Receivers that hang, by webhook. An attempt at one costs five seconds of a place that others could use, so after a few
 * in a row nothing is sent there for a while; then one attempt asks whether it is back. What was due meanwhile shares the
 * fate of that attempt (settle.ts): it goes out when the receiver answers, and has failed once more when it does not.
 *
 * Any answer, also a refusal, closes it. What is known here is known to this process, bounded, and may be forgotten.
 */
import type { Clock, Millis } from '#shared/clock.ts';

/** Hung attempts in a row. */
const OPENS_AFTER = 3;
/** The first pause; each further one is twice as long, up to the longest. */
const PAUSE_MS: Millis = 10_000;
const PAUSE_MS_MAX: Millis = 60_000;
/** Webhooks that are remembered; the one longest known to hang is forgotten first. */
const KNOWN_MAX = 10_000;

type BreakerState =
  /** All is well. */
  | 'closed'
  /** Nothing is sent. */
  | 'open'
  /** One attempt may find out. */
  | 'probing';

interface Breaker {
  state(webhookId: string): BreakerState;
  /** The attempt that finds out is under way. @returns ends that, whether it found out or not */
  beginProbe(webhookId: string): () => void;
  /** How an attempt went. @returns what the webhook's state is now */
  record(webhookId: string, isHung: boolean): BreakerState;
}

interface Known {
  hungInARow: number;
  pauseMs: Millis;
  /** null: closed. */
  openUntil: Millis | null;
  isProbed: boolean;
}

export function createBreaker(clock: Clock, knownMax = KNOWN_MAX): Breaker {
  const known = new Map<string, Known>();

  const stateOf = (webhookId: string): BreakerState => {
    const one = known.get(webhookId);
    if (one === undefined || one.openUntil === null) return 'closed';
    return one.isProbed || clock() < one.openUntil ? 'open' : 'probing';
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
      // Attempts that began before it opened are no news.
      if (one.hungInARow >= OPENS_AFTER && (one.openUntil === null || one.isProbed)) {
        one.pauseMs = Math.min(Math.max(one.pauseMs * 2, PAUSE_MS), PAUSE_MS_MAX);
        one.openUntil = clock() + one.pauseMs;
        one.isProbed = false;
      }
      return stateOf(webhookId);
    },
  };
}
