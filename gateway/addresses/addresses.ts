/**
 * The addresses of refused clients by digest, for operators who allow it: always (GATEWAY_SHOW_ADDRESSES), or for some
 * minutes from the page. They exist in the memory of the gateway's processes only, for a limited time. They are never
 * written to the store, a log or the metrics.
 */
import type { RefusedAddress, RefusedAddresses } from '#gateway/observe/refused-addresses.ts';
import type { Clock, Millis } from '#shared/clock.ts';

const ADDRESSES_MAX = 4096;
const SWEEP_MS: Millis = 1000;

export class Addresses implements RefusedAddresses {
  /** How long an address is kept; null if that is allowed only for some minutes. */
  readonly #keptMs: Millis | null;
  readonly #clock: Clock;
  /** Entries by digest. The entry that is dropped next comes first. */
  readonly #known = new Map<string, RefusedAddress>();
  /** Digests of the entries that `fresh` has not returned yet. */
  readonly #fresh = new Set<string>();
  readonly #sweeper: NodeJS.Timeout;

  /** 0 if no operator has asked. */
  #shownUntil: Millis = 0;

  constructor(keptMs: Millis | null, clock: Clock) {
    this.#keptMs = keptMs;
    this.#clock = clock;
    this.#sweeper = setInterval(() => this.#sweep(), SWEEP_MS).unref();
  }

  get size(): number {
    return this.#known.size;
  }

  get isOn(): boolean {
    return this.#keptMs !== null || this.shownUntil !== null;
  }

  /** End of the minutes for which an operator allowed it; null if they are over. */
  get shownUntil(): Millis | null {
    // Each denial comes here, and usually nobody has asked for addresses.
    if (this.#shownUntil === 0) return null;
    return this.#shownUntil > this.#clock() ? this.#shownUntil : null;
  }

  /** Allows it for some time. After that, all addresses are dropped at once, unless the setting keeps them. */
  show(forMs: Millis): void {
    this.#shownUntil = this.#clock() + forMs;
    if (this.isOn) return;
    this.#known.clear();
    this.#fresh.clear();
  }

  note(identity: string, address: string): void {
    const now = this.#clock();
    const keptMs = Math.max(this.#keptMs ?? 0, this.#shownUntil - now);
    if (keptMs <= 0) return;
    const until = now + keptMs;
    const known = this.#known.get(identity);
    // Do not renew the entry with every request of a flood.
    if (known?.address === address && until - known.until < keptMs / 10) return;
    this.take([{ identity, address, until }]);
    this.#fresh.add(identity);
  }

  /** Adds entries of another process. */
  take(entries: readonly RefusedAddress[]): void {
    if (!this.isOn) return;
    for (const entry of entries) {
      this.#known.delete(entry.identity);
      this.#known.set(entry.identity, entry);
      if (this.#known.size > ADDRESSES_MAX) this.#forgetFirst();
    }
  }

  /** @returns the entries that were noted since the last call */
  fresh(): RefusedAddress[] {
    const entries = [...this.#fresh].flatMap((identity) => this.#known.get(identity) ?? []);
    this.#fresh.clear();
    return entries;
  }

  /** @returns null if unknown */
  find(identity: string): string | null {
    const entry = this.isOn ? this.#known.get(identity) : undefined;
    return entry !== undefined && entry.until > this.#clock() ? entry.address : null;
  }

  close(): void {
    clearInterval(this.#sweeper);
    this.#known.clear();
    this.#fresh.clear();
  }

  #sweep(): void {
    const now = this.#clock();
    for (const [, { until }] of this.#known) {
      if (until > now) break;
      this.#forgetFirst();
    }
  }

  #forgetFirst(): void {
    for (const identity of this.#known.keys()) {
      this.#known.delete(identity);
      this.#fresh.delete(identity);
      return;
    }
  }
}
