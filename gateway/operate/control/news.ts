/**
 * Brings each process what operators changed, and bans by policies. Twice a second it asks the store for a version number.
 * If that has changed, it reads the changes since the version that it knows. While the store is away, the last known state
 * holds.
 * If these changes are no longer listed, the store may have lost data, wholly or in a failover. Then the process writes back
 * what it knows, so that operators can see it and end it, and reads everything.
 */
import { identityOf } from '#gateway/identity/digest.ts';
import type { KnownCounters } from '#gateway/limiter/known-counters.ts';
import type { Counter } from '#gateway/policy/counter.ts';
import type { StoreConnection, StoreScript } from '#gateway/store/connection.ts';
import type { Clock, Millis } from '#shared/clock.ts';
import { within } from '#shared/within.ts';
import { type Bans, noteOf, readNote } from './bans.ts';
import type { ControlChange } from './control.ts';
import { BAN_KEYS, CHANGES_KEY, NEWS, RESTORE, SHADOW_ORDER_KEY, SHADOWS_KEY } from './scripts.ts';
import type { Shadows } from './shadows.ts';

const ASK_EVERY_MS: Millis = 500;
const ANSWER_MS: Millis = 1000;
const KEYS = [...BAN_KEYS, SHADOWS_KEY, SHADOW_ORDER_KEY, CHANGES_KEY];
/** The version of a process that knows nothing. */
const NONE = '0';

interface NewsOptions {
  readonly connection: StoreConnection;
  readonly clock: Clock;
  readonly known: KnownCounters;
  readonly bans: Bans;
  readonly shadows: Shadows;
  /** All counters of the policies in use. */
  readonly counters: () => readonly Counter[];
}

export class News {
  readonly #options: NewsOptions;
  #version = NONE;
  /** The version of the newest change that did not come from the store. */
  #learned = 0;
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

  /** Applies a change that an operator has just made in the store, even if the store is gone now. Never rejects. */
  async learn(change: ControlChange): Promise<void> {
    const { bans, shadows } = this.#options;
    if ('bucket' in change) shadows.change(change);
    else if (change.ban === null) bans.lift(change.digest, change.version);
    else bans.set(change.digest, change.ban, change.version);
    this.#learned = Math.max(this.#learned, change.version);
    await this.ask();
  }

  /** Never rejects. Without an answer, the last known state holds. */
  async ask(): Promise<void> {
    const { connection, bans, shadows, clock, known } = this.#options;
    bans.dropEnded(clock());
    if (!connection.ready) return;
    const reply = await this.#run(NEWS, [this.#version]);
    if (!Array.isArray(reply)) return;
    const [version, now, kind, banned, reasons, made, lifted, inShadow, shadowOrder, cleared]: unknown[] =
      reply;
    const heardAt = clock();
    const isNew = kind !== undefined;
    if (kind === 'lost' || (!isNew && Number(version) < this.#learned)) {
      if ((await this.#restore()) === null) return;
      this.#version = NONE;
      this.#learned = 0;
      await this.ask();
      return;
    }
    if (!isNew) return;
    this.#version = String(version);
    const aheadMs = Number(now) - heardAt;
    const notes = byName(reasons);
    const versions = byName(made);
    if (kind === 'all') bans.clear();
    for (const [digest, endsAt] of endsByName(banned, aheadMs)) {
      const version = Number(versions.get(digest) ?? 0);
      if (endsAt > heardAt) bans.set(digest, { endsAt, ...readNote(notes.get(digest) ?? '') }, version);
      else bans.delete(digest);
    }
    for (const [digest, version] of byName(lifted)) bans.lift(digest, Number(version));
    if (inShadow !== null) shadows.replace(endsByName(inShadow, aheadMs), endsByName(shadowOrder));
    if (kind === 'all') known.forgetCounters();
    else if (Array.isArray(cleared))
      for (const digest of cleared) known.forget(identityOf(String(digest)), this.#options.counters());
  }

  /** @returns null: the store did not answer, and is asked again later */
  #restore(): Promise<unknown> {
    const { bans, shadows, clock } = this.#options;
    const now = clock();
    const changes: string[] = [];
    for (const { digest, ban, version } of bans.changes())
      if (ban === null) changes.push(digest, '0', String(version), '');
      else if (ban.endsAt > now)
        changes.push(digest, String(Math.ceil(ban.endsAt - now)), String(version), noteOf(ban));
    const inShadow = [...shadows.changes()].flatMap(({ bucket, endsAt, version }) => [
      bucket,
      String(endsAt === null ? 0 : Math.max(0, Math.ceil(endsAt - now))),
      String(version),
    ]);
    // Another process with the version that was read last may not know the learned change.
    const version = String(Math.max(Number(this.#version), this.#learned));
    return this.#run(RESTORE, [version, String(changes.length / 4), ...changes, ...inShadow]);
  }

  #run(script: StoreScript, args: readonly string[]): Promise<unknown> {
    return within(ANSWER_MS, this.#options.connection.run(script, KEYS, args)).catch(() => null);
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
