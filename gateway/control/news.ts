/**
 * Brings each process what operators changed: twice a second it asks the store for a version, and for bans, policies in
 * shadow and cleared counters where that is a new one. While the store is away, what is known holds.
 */
import { identityOf } from '#gateway/identity/digest.ts';
import type { KnownCounters } from '#gateway/limiter/known-counters.ts';
import type { Counter } from '#gateway/policy/counter.ts';
import type { StoreConnection } from '#gateway/store/connection.ts';
import type { Clock, Millis } from '#shared/clock.ts';
import { within } from '#shared/within.ts';
import type { Bans } from './bans.ts';
import { BANS_KEY, NEWS, RESETS_KEY, RESETS_MS, SHADOWS_KEY, VERSION_KEY } from './scripts.ts';
import type { Shadows } from './shadows.ts';

const ASK_EVERY_MS: Millis = 500;
const ANSWER_MS: Millis = 1000;

export interface NewsOptions {
  readonly connection: StoreConnection;
  readonly clock: Clock;
  readonly known: KnownCounters;
  readonly bans: Bans;
  readonly shadows: Shadows;
  /** All counters of the policies in use. */
  readonly counters: () => readonly Counter[];
}

/** Whoever keeps counters in a store also hears there what operators changed. @param limiter null: there is none */
export function newsFrom(
  limiter: Pick<NewsOptions, 'connection' | 'known'> | null,
  options: Omit<NewsOptions, 'connection' | 'known'>,
): News | null {
  return limiter === null
    ? null
    : new News({ ...options, connection: limiter.connection, known: limiter.known });
}

export class News {
  readonly #options: NewsOptions;
  #version = '0';
  #heardAt: Millis;
  #timer: NodeJS.Timeout | undefined;
  #isStopped = false;

  constructor(options: NewsOptions) {
    this.#options = options;
    this.#heardAt = options.clock();
  }

  /** Resolves once the store was asked for the first time, whatever came of it. */
  async start(): Promise<void> {
    await this.#ask();
    if (this.#isStopped) return;
    this.#timer = setTimeout(() => void this.start(), ASK_EVERY_MS);
    this.#timer.unref();
  }

  stop(): void {
    this.#isStopped = true;
    clearTimeout(this.#timer);
  }

  /** Never rejects: without an answer, what is known holds. */
  async #ask(): Promise<void> {
    const { connection, bans, shadows, clock, known } = this.#options;
    bans.dropEnded(clock());
    if (!connection.ready) return;
    const keys = [VERSION_KEY, BANS_KEY, RESETS_KEY, SHADOWS_KEY];
    const reply = await within(ANSWER_MS, connection.run(NEWS, keys, [this.#version])).catch(() => null);
    if (!Array.isArray(reply)) return;
    const [version, now, banned, cleared, isCut, inShadow]: unknown[] = reply;
    const awayMs = clock() - this.#heardAt;
    this.#heardAt = clock();
    // A store that lost everything says nothing: what is known of bans holds.
    if (typeof version !== 'string' || version === '' || version === this.#version) return;
    this.#version = version;
    const aheadMs = Number(now) - this.#heardAt;
    bans.replace(endsByName(banned, aheadMs));
    shadows.replace(endsByName(inShadow, aheadMs));
    if (isCut === 1 || awayMs > RESETS_MS / 2) known.forgetCounters();
    else if (Array.isArray(cleared))
      for (const digest of cleared) known.forget(identityOf(String(digest)), this.#options.counters());
  }
}

/** @param reply names and ends in turn @param aheadMs by which the clock of the ends is ahead of ours */
export function endsByName(reply: unknown, aheadMs: Millis = 0): Map<string, Millis> {
  const endsAt = new Map<string, Millis>();
  if (!Array.isArray(reply)) return endsAt;
  for (let i = 0; i < reply.length; i += 2) endsAt.set(String(reply[i]), Number(reply[i + 1]) - aheadMs);
  return endsAt;
}
