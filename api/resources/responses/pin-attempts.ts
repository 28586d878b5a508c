/**
 * Wrong PINs, by survey and address. A PIN has four characters, so whoever may try them all will find it: after ten
 * wrong ones an address has to wait. Kept in the memory of the process, bounded.
 */
import type { Clock, Millis } from '#shared/clock.ts';

const WRONG_MAX = 10;
const WINDOW_MS: Millis = 10 * 60 * 1000;
/** Beyond it the address that began first is forgotten. */
const KEYS_MAX = 10_000;

export interface PinAttempts {
  /** @returns how long this address has to wait; null: it may try */
  secondsToWait(key: string): number | null;
  noteWrong(key: string): void;
}

export function createPinAttempts(clock: Clock): PinAttempts {
  /** In the order in which they began. */
  const windows = new Map<string, { wrong: number; readonly endsAt: Millis }>();
  return {
    secondsToWait(key) {
      const window = windows.get(key);
      if (window === undefined || window.wrong < WRONG_MAX) return null;
      const left = window.endsAt - clock();
      return left > 0 ? Math.ceil(left / 1000) : null;
    },
    noteWrong(key) {
      const now = clock();
      const window = windows.get(key);
      if (window !== undefined && window.endsAt > now) {
        window.wrong += 1;
        return;
      }
      // Set again at the end, so that the order of the map stays that of the beginnings.
      windows.delete(key);
      const oldest = windows.size >= KEYS_MAX ? windows.keys().next().value : undefined;
      if (oldest !== undefined) windows.delete(oldest);
      windows.set(key, { wrong: 1, endsAt: now + WINDOW_MS });
    },
  };
}
