/**
 * Brings each process what operators changed, and bans by policies. Twice a second it asks the store for a version number.
 * If that has changed, it reads the changes since the version that it knows, or everything if these are no longer listed.
 * While the store is away, the last known state holds.
 * If the store has lost its data, wholly or in a failover, the process writes back what it knows, so that operators can
 * see it and end it.
 */
import { identityOf } from '#gateway/identity/digest.ts';
import type { KnownCounters } from '#gateway/limiter/known-counters.ts';
import type { Counter } from '#gateway/policy/counter.ts';
import type { StoreConnection } from '#gateway/store/connection.ts';
import type { Clock, Millis } from '#shared/clock.ts';
import { within } from '#shared/within.ts';
import { type Bans, noteOf, readNote } from './bans.ts';
import {
  BAN_KEYS,
  BANS_KEY,
  CHANGES_KEY,
  INCARNATION_KEY,
  NEWS,
  REASONS_KEY,
  RESTORE,
  SHADOWS_KEY,
  VERSION_KEY,
} from './scripts.ts';
import type { Shadows } from './shadows.ts';

const ASK_EVERY_MS: Millis = 500;
const ANSWER_MS: Millis = 1000;

interface NewsOptions {
  readonly connection: StoreConnection;
  readonly clock: Clock;
  readonly known: KnownCounters;
  readonly bans: Bans;
  readonly shadows: Shadows;
  /** All counters of the policies in use. */
  readonly counters: () => readonly Counter[];
}

/** @param limiter null: counters are in memory, and there is nothing to ask */
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
  /** The incarnation of the store with this version; '' before the first answer. */
  #incarnation = '';
  #timer: NodeJS.Timeout | undefined;
  #isStopped = false;

  constructor(options: NewsOptions) {
    this.#options = options;
  }

  /** Resolves when the store was asked for the first time, even if it did not answer. */
  async start(): Promise<void> {
    await this.ask();
    if (this.#isStopped) return;
    this.#timer = setTimeout(() => void this.start(), ASK_EVERY_MS);
    this.#timer.unref();
  }

  stop(): void {
    this.#isStopped = true;
    clearTimeout(this.#timer);
  }

  /** Never rejects. Without an answer, the last known state holds. */
  async ask(): Promise<void> {
    const { connection, bans, shadows, clock, known } = this.#options;
    bans.dropEnded(clock());
    if (!connection.ready) return;
    const keys = [VERSION_KEY, BANS_KEY, REASONS_KEY, SHADOWS_KEY, CHANGES_KEY, INCARNATION_KEY];
    const args = [this.#version, this.#incarnation];
    const reply = await within(ANSWER_MS, connection.run(NEWS, keys, args)).catch(() => null);
    if (!Array.isArray(reply)) return;
    const [version, incarnation, now, isAll, banned, reasons, inShadow, cleared]: unknown[] = reply;
    const heardAt = clock();
    if (typeof version !== 'string' || typeof incarnation !== 'string') return;
    const isOther = this.#incarnation !== '' && incarnation !== this.#incarnation;
    if (isOther || Number(version) < Number(this.#version)) {
      const restored = await this.#restore();
      if (restored === null || restored === this.#incarnation) return;
      // Read everything else that the store has.
      this.#incarnation = restored;
      this.#version = '0';
      await this.ask();
      return;
    }
    if (version === '' || now === undefined) return;
    this.#version = version;
    this.#incarnation = incarnation;
    const aheadMs = Number(now) - heardAt;
    const notes = byName(reasons);
    if (isAll === 1) bans.clear();
    for (const [digest, endsAt] of endsByName(banned, aheadMs))
      if (endsAt > heardAt) bans.set(digest, { endsAt, ...readNote(notes.get(digest) ?? '') });
      else bans.delete(digest);
    if (inShadow !== null) shadows.replace(endsByName(inShadow, aheadMs));
    if (isAll === 1) known.forgetCounters();
    else if (Array.isArray(cleared))
      for (const digest of cleared) known.forget(identityOf(String(digest)), this.#options.counters());
  }

  /** @returns the new incarnation of the store; null: it did not answer, and is asked again later */
  async #restore(): Promise<string | null> {
    const { connection, bans, shadows, clock } = this.#options;
    const now = clock();
    const left = (name: string, endsAt: Millis, ...more: string[]): string[] =>
      endsAt > now ? [name, String(Math.ceil(endsAt - now)), ...more] : [];
    const banned = [...bans.all].flatMap(([digest, ban]) => left(digest, ban.endsAt, noteOf(ban)));
    const inShadow = [...shadows.endsAt].flatMap(([bucket, endsAt]) => left(bucket, endsAt));
    const keys = [...BAN_KEYS, SHADOWS_KEY, CHANGES_KEY, INCARNATION_KEY];
    const args = [this.#version, this.#incarnation, String(banned.length / 3), ...banned, ...inShadow];
    const reply = await within(ANSWER_MS, connection.run(RESTORE, keys, args)).catch(() => null);
    return typeof reply === 'string' ? reply : null;
  }
}

/** @param reply names and ends in turn @param aheadMs how far the store's clock is ahead of this process */
export function endsByName(reply: unknown, aheadMs: Millis = 0): Map<string, Millis> {
  return new Map([...byName(reply)].map(([name, end]) => [name, Number(end) - aheadMs]));
}

/** @param reply names and values in turn */
function byName(reply: unknown): Map<string, string> {
  const values = new Map<string, string>();
  if (!Array.isArray(reply)) return values;
  for (let i = 0; i < reply.length; i += 2) values.set(String(reply[i]), String(reply[i + 1]));
  return values;
}
