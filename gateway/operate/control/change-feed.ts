/**
 * Reads changes by operators, and bans by policies, from the store into a process. Twice a second it reads a version
 * number. If the number has changed, it reads the changes since the version that it knows. While the store is
 * unavailable, the last known state stays in force.
 *
 * If the store no longer lists these changes, it may have lost data, completely or in a failover. Then the process
 * writes back the bans and shadow modes that it knows, so that operators can see and end them, and reads everything
 * again.
 */
import { identityOf } from '#gateway/identity/digest.ts';
import type { KnownCounters } from '#gateway/limiter/known-counters.ts';
import type { Counter } from '#gateway/policy/counter.ts';
import type { StoreConnection, StoreScript } from '#gateway/store/connection.ts';
import { isErrorReply } from '#gateway/store/fault.ts';
import type { Clock, Millis } from '#shared/clock.ts';
import { within } from '#shared/within.ts';
import { type Bans, noteOf, readNote } from './bans.ts';
import type { ControlChange } from './control.ts';
import { BAN_KEYS, CHANGES_KEY, READ_CHANGES, RESTORE, SHADOW_ORDER_KEY, SHADOWS_KEY } from './scripts.ts';
import type { Shadows } from './shadows.ts';

const POLL_EVERY_MS: Millis = 500;
/** A store that answers with errors is asked less and less often, up to this interval. */
const PAUSE_MS_MAX: Millis = 5000;
const ANSWER_MS: Millis = 1000;
const KEYS = [...BAN_KEYS, SHADOWS_KEY, SHADOW_ORDER_KEY, CHANGES_KEY];
/** The version of a process that has not read anything yet. */
const NONE = '0';

interface ChangeFeedOptions {
  readonly connection: StoreConnection;
  readonly clock: Clock;
  readonly known: KnownCounters;
  readonly bans: Bans;
  readonly shadows: Shadows;
  /** All counters of the policies in use. */
  readonly counters: () => readonly Counter[];
}

export class ChangeFeed {
  readonly #options: ChangeFeedOptions;
  #version = NONE;
  /** Version of the newest change that was passed to `apply` instead of being read from the store. */
  #appliedVersion = 0;
  /** Digests of the clients whose counters the next poll forgets. */
  #cleared: readonly string[] = [];
  #pauseMs: Millis = POLL_EVERY_MS;
  #timer: NodeJS.Timeout | undefined;
  #isStopped = false;

  constructor(options: ChangeFeedOptions) {
    this.#options = options;
  }

  /** Begins to read changes. Resolves after the first attempt, even if the store did not answer. */
  async start(): Promise<void> {
    await this.poll();
    if (this.#isStopped) return;
    this.#timer = setTimeout(() => void this.start(), this.#pauseMs);
    this.#timer.unref();
  }

  stop(): void {
    this.#isStopped = true;
    clearTimeout(this.#timer);
  }

  /** Applies a change that an operator has just made in the store, even if the store fails now. Never rejects. */
  async apply(change: ControlChange): Promise<void> {
    const { bans, shadows } = this.#options;
    if ('cleared' in change) this.#cleared = [...this.#cleared, change.cleared];
    else {
      if ('bucket' in change) shadows.change(change);
      else if (change.ban === null) bans.lift(change.digest, change.version);
      else bans.set(change.digest, change.ban, change.version);
      this.#appliedVersion = Math.max(this.#appliedVersion, change.version);
    }
    await this.poll();
  }

  /** Reads new changes. Never rejects: if the store does not answer, the last known state stays in force. */
  async poll(): Promise<void> {
    const { connection, bans, shadows, clock, known } = this.#options;
    bans.dropEnded(clock());
    this.#forget(this.#cleared);
    this.#cleared = [];
    if (!connection.ready) return;
    const reply = await this.#run(READ_CHANGES, [this.#version]);
    if (!Array.isArray(reply)) return;
    const [version, now, kind, banned, reasons, made, lifted, inShadow, shadowOrder, cleared]: unknown[] =
      reply;
    const heardAt = clock();
    const isNew = kind !== undefined;
    if (kind === 'lost' || (!isNew && Number(version) < this.#appliedVersion)) {
      if ((await this.#restore()) === null) return;
      this.#version = NONE;
      this.#appliedVersion = 0;
      await this.poll();
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
    else if (Array.isArray(cleared)) {
      const digests = cleared.map(String);
      this.#forget(digests);
      // In a Cluster, a decision that another node made before the reset may arrive after it.
      this.#cleared = digests;
    }
  }

  /** @param cleared digests of clients */
  #forget(cleared: readonly string[]): void {
    if (cleared.length === 0) return;
    const counters = this.#options.counters();
    for (const digest of cleared) this.#options.known.forget(identityOf(digest), counters);
  }

  /** Writes known bans and shadow modes to the store. @returns null if the store did not answer; `poll` tries again */
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
    // A process that knows only #version may not know the applied change, so it must see a newer version.
    const version = String(Math.max(Number(this.#version), this.#appliedVersion));
    return this.#run(RESTORE, [version, String(changes.length / 4), ...changes, ...inShadow]);
  }

  async #run(script: StoreScript, args: readonly string[]): Promise<unknown> {
    try {
      const reply = await within(ANSWER_MS, this.#options.connection.run(script, KEYS, args));
      this.#pauseMs = POLL_EVERY_MS;
      return reply;
    } catch (error) {
      if (isErrorReply(error)) this.#pauseMs = Math.min(2 * this.#pauseMs, PAUSE_MS_MAX);
      return null;
    }
  }
}

/** @param reply alternating names and ends @param aheadMs how far the store's clock is ahead of this process */
export function endsByName(reply: unknown, aheadMs: Millis = 0): Map<string, Millis> {
  return new Map([...byName(reply)].map(([name, end]) => [name, Number(end) - aheadMs]));
}

/** @param reply alternating names and values */
function byName(reply: unknown): Map<string, string> {
  const values = new Map<string, string>();
  if (!Array.isArray(reply)) return values;
  for (let i = 0; i < reply.length; i += 2) values.set(String(reply[i]), String(reply[i + 1]));
  return values;
}
