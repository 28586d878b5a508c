/**
 * Counts wrong PINs by survey and address. A PIN has only four characters, so an address must wait after ten wrong ones.
 *
 * An attempt is counted before the PIN is checked, and given back if the PIN was right. So parallel attempts are not more
 * than ten.
 */
import type { Signer } from '#api/auth/signer.ts';
import type { Counters } from '#api/limits/counters.ts';
import { withFallback } from '#api/limits/fallback-counters.ts';
import { digestIdentity } from '#api/limits/limiter.ts';
import type { Clock, Seconds } from '#shared/clock.ts';

const NAME = 'surveys.pin';
const WRONG_MAX = 10;
const WINDOW: Seconds = 10 * 60;

interface PinAttempts {
  /** @returns the seconds that this address must wait; null if the PIN can be checked */
  begin(surveyId: string, address: string): Promise<number | null>;
  giveBack(surveyId: string, address: string): Promise<void>;
}

export function createPinAttempts({
  counters,
  signer,
  clock,
}: {
  readonly counters: Counters;
  readonly signer: Signer;
  readonly clock: Clock;
}): PinAttempts {
  const attempts = withFallback(counters, clock);
  const keyOf = (surveyId: string, address: string): string =>
    digestIdentity(signer, `pin:${surveyId}:${address}`);
  return {
    async begin(surveyId, address) {
      const { used, resetMs } = await attempts.use(NAME, keyOf(surveyId, address), WINDOW);
      return used > WRONG_MAX ? Math.ceil(resetMs / 1000) : null;
    },
    giveBack: (surveyId, address) => attempts.giveBack(NAME, keyOf(surveyId, address)),
  };
}
