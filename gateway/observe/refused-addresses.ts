/** The addresses of refused clients, as the core uses them. The part `addresses/` implements it. */
import type { Millis } from '#shared/clock.ts';

export interface RefusedAddress {
  readonly identity: string;
  readonly address: string;
  /** Time at which the entry is dropped. */
  readonly until: Millis;
}

export interface RefusedAddresses {
  readonly isOn: boolean;
  /** End of the minutes for which an operator allowed it; null if they are over. */
  readonly shownUntil: Millis | null;
  /** Allows it for some time. After that, all addresses are dropped at once, unless the setting keeps them. */
  show(forMs: Millis): void;
  note(identity: string, address: string): void;
  /** Adds entries of another process. */
  take(entries: readonly RefusedAddress[]): void;
  /** @returns the entries that were noted since the last call */
  fresh(): RefusedAddress[];
  /** @returns null if unknown */
  find(identity: string): string | null;
}
