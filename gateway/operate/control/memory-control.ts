/** Control without a store, in the only process. */
import type { Identity } from '#gateway/identity/digest.ts';
import { Bucket } from '#gateway/limiter/charge.ts';
import type { KnownCounters } from '#gateway/limiter/known-counters.ts';
import type { Counter } from '#gateway/policy/counter.ts';
import type { Clock, Millis } from '#shared/clock.ts';
import { BANS_MAX, type Ban, type Bans } from './bans.ts';
import { type Control, type Look, TooManyBansError, TooManyShadowsError } from './control.ts';
import { SHADOWS_MAX, type Shadows } from './shadows.ts';

interface MemoryControlOptions {
  readonly clock: Clock;
  readonly known: KnownCounters;
  readonly bans: Bans;
  readonly shadows: Shadows;
  readonly salt: string;
}

export class MemoryControl implements Control {
  readonly #options: MemoryControlOptions;

  constructor(options: MemoryControlOptions) {
    this.#options = options;
  }

  async salt(): Promise<string> {
    return this.#options.salt;
  }

  async look(
    identity: Identity,
    counters: readonly Counter[],
    limits: readonly number[] = counters.map(({ policy }) => policy.limit),
  ): Promise<Look> {
    const { known } = this.#options;
    const now = Math.floor(this.#now);
    const states = counters.map((counter, i) =>
      known.state(new Bucket(counter, identity, null, 1, identity, limits[i]), now),
    );
    return { now, states, provenUntil: known.provenUntil(identity) };
  }

  async reset(identity: Identity, counters: readonly Counter[]): Promise<number> {
    const { states } = await this.look(identity, counters);
    this.#options.known.forget(identity, counters);
    return states.filter(({ a, b }) => a + b > 0).length;
  }

  async ban({ digest }: Identity, forMs: Millis, reason: string): Promise<Ban> {
    const { bans } = this.#options;
    const now = this.#now;
    if (bans.size >= BANS_MAX) bans.dropEnded(now);
    if (bans.size >= BANS_MAX && bans.endOf(digest, now) === 0) throw new TooManyBansError();
    const ban = { endsAt: now + forMs, reason };
    bans.set(digest, ban);
    return ban;
  }

  async unban(identity: Identity): Promise<boolean> {
    const was = await this.banOf(identity);
    this.#options.bans.delete(identity.digest);
    return was !== null;
  }

  async banOf({ digest }: Identity): Promise<Ban | null> {
    return this.#options.bans.of(digest, this.#now);
  }

  async shadow(bucket: string, forMs: Millis): Promise<Millis> {
    const { shadows } = this.#options;
    if (shadows.endsAt.size >= SHADOWS_MAX && !shadows.endsAt.has(bucket)) throw new TooManyShadowsError();
    const endsAt = this.#now + forMs;
    shadows.set(bucket, endsAt);
    return endsAt;
  }

  async unshadow(bucket: string): Promise<boolean> {
    return this.#options.shadows.delete(bucket);
  }

  async shadows(): Promise<ReadonlyMap<string, Millis>> {
    return this.#options.shadows.endsAt;
  }

  async storeReport(): Promise<null> {
    return null;
  }

  close(): void {
    // Nothing is open.
  }

  get #now(): Millis {
    return this.#options.clock();
  }
}
