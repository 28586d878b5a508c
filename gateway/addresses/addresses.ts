/**
 * The addresses of refused clients by digest, for operators who allow it with GATEWAY_SHOW_ADDRESSES. They exist in the
 * memory of the gateway's processes only, for a limited time. They are never written to the store, a log or the metrics.
 */
import type { Clock, Millis } from '#shared/clock.ts';

const ADDRESSES_MAX = 4096;
const SWEEP_MS: Millis = 1000;

export interface RefusedAddress {
  readonly identity: string;
  readonly address: string;
  /** Time at which the entry is dropped. */
  readonly until: Millis;
}

export class RefusedAddresses {
  readonly #keptMs: Millis;
  readonly #clock: Clock;
  /** Entries by digest. The entry that is dropped next comes first. */
  readonly #known = new Map<string, RefusedAddress>();
  /** Digests of the entries that `fresh` has not returned yet. */
  readonly #fresh = new Set<string>();
  readonly #sweeper: NodeJS.Timeout;

  constructor(keptMs: Millis, clock: Clock) {
    this.#keptMs = keptMs;
    this.#clock = clock;
    this.#sweeper = setInterval(() => this.#sweep(), SWEEP_MS).unref();
  }

  get size(): number {
    return this.#known.size;
  }

  note(identity: string, address: string): void {
    const until = this.#clock() + this.#keptMs;
    const known = this.#known.get(identity);
    // Do not renew the entry with every request of a flood.
    if (known?.address === address && until - known.until < this.#keptMs / 10) return;
    this.take([{ identity, address, until }]);
    this.#fresh.add(identity);
  }

  /** Adds entries of another process. */
  take(entries: readonly RefusedAddress[]): void {
    for (const entry of entries) {
      this.#known.delete(entry.identity);
      this.#known.set(entry.identity, entry);
      const [first] = this.#known.keys();
      if (this.#known.size > ADDRESSES_MAX && first !== undefined) this.#forget(first);
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
    const entry = this.#known.get(identity);
    return entry !== undefined && entry.until > this.#clock() ? entry.address : null;
  }

  close(): void {
    clearInterval(this.#sweeper);
    this.#known.clear();
    this.#fresh.clear();
  }

  #sweep(): void {
    const now = this.#clock();
    for (const { identity, until } of this.#known.values()) if (until <= now) this.#forget(identity);
  }

  #forget(identity: string): void {
    this.#known.delete(identity);
    this.#fresh.delete(identity);
  }
}
