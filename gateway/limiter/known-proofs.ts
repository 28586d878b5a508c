/** The credentials that this process knows to be proven, and those of which the store had no proof a short time ago. */

import type { Identity } from '#gateway/identity/digest.ts';
import type { Millis } from '#shared/clock.ts';
import { DigestTable } from './digest-table.ts';
import { PROVEN_LOCALLY_MS } from './limiter.ts';

/** How long the store is not asked again about a credential without a proof. */
const UNPROVEN_MS: Millis = 10_000;
/** Size of a separate table, so that a flood of invented credentials does not displace others. */
const UNPROVEN_MAX = 16_384;
/** The largest value that a record can store. */
const SLACK_MS_MAX: Millis = 2 ** 32 - 1;

export class KnownProofs {
  readonly #proven: DigestTable;
  readonly #unproven: DigestTable;
  /** When this process heard that the store may have lost its data. */
  #lostAt: Millis = Number.NEGATIVE_INFINITY;

  /** @param credentialsMax a power of two */
  constructor(credentialsMax: number) {
    this.#proven = new DigestTable(credentialsMax);
    this.#unproven = new DigestTable(Math.min(UNPROVEN_MAX, credentialsMax));
  }

  get size(): number {
    return this.#proven.size + this.#unproven.size;
  }

  /**
   * @param until when this process asks the store again
   * @param freshUntil when the next success is reported; default: at once
   */
  prove({ words }: Identity, until: Millis, freshUntil: Millis = 0): void {
    this.#proven.put(words, 1, until, Math.ceil(Math.min(until - freshUntil, SLACK_MS_MAX)));
    this.#unproven.delete(words);
  }

  isProven(credential: Identity, now: Millis): boolean {
    return (this.provenUntil(credential) ?? 0) > now;
  }

  /** Whether a success of this credential was reported recently. */
  isFresh({ words }: Identity, now: Millis): boolean {
    const entry = this.#proven.get(words);
    if (entry === null) return false;
    return entry.until - entry.slack > Math.max(now, this.#lostAt + PROVEN_LOCALLY_MS);
  }

  /** @returns until when it counts as proven, possibly in the past; null if unknown */
  provenUntil({ words }: Identity): Millis | null {
    return this.#proven.get(words)?.until ?? null;
  }

  withdraw({ words }: Identity): void {
    this.#proven.delete(words);
  }

  /** Records that the store had no proof of this credential. */
  noteUnproven({ words }: Identity, now: Millis): void {
    this.#unproven.put(words, 1, now + UNPROVEN_MS, 0);
  }

  /** Whether the store had no proof when it was last asked, a short time ago. */
  isUnproven({ words }: Identity, now: Millis): boolean {
    return (this.#unproven.get(words)?.until ?? 0) > now;
  }

  /** Called when the store may have lost its data. The next success of each credential is then reported again. */
  noteLoss(now: Millis): void {
    this.#lostAt = now;
  }
}
