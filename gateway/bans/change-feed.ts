/**
 * Reads changes by operators, and bans by policies, from the store into a process. Twice a second it asks for the newest
 * version. If it has not heard of it, it reads what has changed. While the store is unavailable, the last known state
 * stays in force.
 *
 * If the store does not know a version of which this process has heard, it has lost data, completely or in a failover.
 * Then the process writes back what it knows, so that operators can see and end it, and reads everything again.
 */
import { identityOf } from '#gateway/identity/digest.ts';
import type { KnownCounters } from '#gateway/limiter/known-counters.ts';
import type { Counter } from '#gateway/policy/counter.ts';
import type { StoreConnection, StoreScript } from '#gateway/store/connection.ts';
import { isErrorReply } from '#gateway/store/fault.ts';
import type { Clock, Millis } from '#shared/clock.ts';
import { within } from '#shared/within.ts';
import { type BanChange, type Bans, noteOf, readNote } from './bans.ts';
import type { ControlChange } from './control.ts';
import { BANS_KEY, CONTROL_KEYS, READ_CHANGES, SHADOWS_KEY, VERSIONS_MAX, WRITE_BACK } from './scripts.ts';
import type { ShadowChange, Shadows } from './shadows.ts';

const POLL_EVERY_MS: Millis = 500;
/** A store that answers with errors is asked less and less often, up to this interval. */
const PAUSE_MS_MAX: Millis = 5000;
const ANSWER_MS: Millis = 1000;
/**
 * For this time, a process remembers the changes that operators have made at its own gateway. It makes them again if the
 * store loses them, or if another process that had not heard of them writes back a ban that was lifted.
 */
const RECENT_MS: Millis = 10_000;
const RECENT_MAX = 1000;
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

/** A change that an operator has made at this gateway. */
interface RecentChange {
  readonly change: BanChange | ShadowChange;
  readonly until: Millis;
}

export class ChangeFeed {
  readonly #options: ChangeFeedOptions;
  /** The newest version that the process has read. */
  #version = NONE;
  /** The newest versions of which the process has heard. It has heard of all up to the first of them. */
  #heard: readonly string[] = [NONE];
  #recent: RecentChange[] = [];
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
    if ('cleared' in change) this.#cleared = [...this.#cleared, change.cleared];
    else {
      this.#make(change);
      const until = this.#options.clock() + RECENT_MS;
      this.#recent = [...this.#recent, { change, until }].slice(-RECENT_MAX);
    }
    await this.poll();
  }

  #make(change: BanChange | ShadowChange): void {
    const { bans, shadows } = this.#options;
    if ('bucket' in change) shadows.change(change);
    else if (change.ban === null) bans.delete(change.digest);
    else bans.set(change.digest, change.ban, change.version);
    this.#hear([...this.#heard, String(change.version)]);
  }

  /** Reads new changes. Never rejects: if the store does not answer, the last known state stays in force. */
  async poll(): Promise<void> {
    const { connection, bans, clock } = this.#options;
    const now = clock();
    bans.dropEnded(now);
    this.#forget(this.#cleared);
    this.#cleared = [];
    if (!connection.ready) return;
    const later = this.#recent.map(({ change }) => String(change.version));
    const reply = await this.#run(READ_CHANGES, [this.#version, ...later]);
    if (!Array.isArray(reply)) return;
    // Forget none that the store has not been asked about since.
    if (reply[2] !== 'lost') this.#recent = this.#recent.filter(({ until }) => until > now);
    const [version, storeNow, scope, banned, inShadow, gone, versions]: unknown[] = reply;
    if (scope === undefined) return;
    if (scope !== 'lost') {
      this.#version = String(version);
      this.#hear([...(scope === 'all' ? [] : this.#heard), ...(versions as unknown[]).map(String)]);
      const removed = (gone as unknown[]).map(String);
      if (scope === 'all') this.#options.known.forgetCounters();
      this.#take(
        scope === 'all' ? null : removed,
        listed(banned, storeNow, clock()),
        listed(inShadow, storeNow, clock()),
      );
      // A change may have been made while this reply was on its way.
      for (const { change } of this.#recent) if (change.version > Number(version)) this.#make(change);
      const cleared = namesOf('counters', removed);
      this.#forget(cleared);
      // In a Cluster, a decision that another node made before the reset may arrive after it.
      this.#cleared = cleared;
      if (!this.#recent.some((recent) => this.#isUndone(recent))) return;
    }
    if ((await this.#writeBack()) !== null) await this.poll();
  }

  #hear(versions: readonly string[]): void {
    this.#heard = [...new Set(versions)].sort((a, b) => Number(a) - Number(b)).slice(-VERSIONS_MAX);
  }

  /** @param gone what was removed; null if the entries are all that there are */
  #take(
    gone: readonly string[] | null,
    banned: readonly ControlEntry[],
    inShadow: readonly ControlEntry[],
  ): void {
    const { bans, shadows } = this.#options;
    if (gone === null) bans.clear();
    else for (const digest of namesOf('ban', gone)) bans.delete(digest);
    for (const { name, version, endsAt, note } of banned)
      bans.set(name, { endsAt, ...readNote(note) }, version);
    const ends = new Map(gone === null ? [] : shadows.endsAt);
    for (const bucket of gone === null ? [] : namesOf('shadow', gone)) ends.delete(bucket);
    const versions = new Map([...ends.keys()].map((bucket) => [bucket, shadows.versionOf(bucket)]));
    for (const { name, version, endsAt } of inShadow) {
      ends.set(name, endsAt);
      versions.set(name, version);
    }
    shadows.replace(ends, versions);
  }

  /** Whether the store has again what an operator has removed here. */
  #isUndone({ change }: RecentChange): boolean {
    const { bans, shadows } = this.#options;
    const { version } = change;
    if ('bucket' in change)
      return change.endsAt === null && isBetween(shadows.versionOf(change.bucket), version);
    return change.ban === null && isBetween(bans.versionOf(change.digest), version);
  }

  /** @param cleared digests of clients */
  #forget(cleared: readonly string[]): void {
    if (cleared.length === 0) return;
    const counters = this.#options.counters();
    const { known } = this.#options;
    for (const identity of cleared.map(identityOf)) {
      known.forget(identity, counters);
      // The store knows whether the credential is proven, or the client a regular.
      known.proofs.withdraw(identity);
    }
  }

  /** @returns null if the store did not answer; a later poll tries again */
  #writeBack(): Promise<unknown> {
    const { bans, shadows, clock } = this.#options;
    const now = clock();
    const entries: (string | number)[] = [];
    const add = (
      set: typeof BANS_KEY | typeof SHADOWS_KEY,
      name: string,
      ms: Millis,
      version: number,
      note: string,
    ) => entries.push(CONTROL_KEYS.indexOf(set) + 1, name, Math.max(0, Math.ceil(ms)), version, note);
    for (const { change } of this.#recent) {
      if ('bucket' in change) {
        if (change.endsAt === null) add(SHADOWS_KEY, change.bucket, 0, change.version, '');
      } else if (change.ban === null) add(BANS_KEY, change.digest, 0, change.version, '');
    }
    for (const [digest, ban] of bans.all)
      if (ban.endsAt > now) add(BANS_KEY, digest, ban.endsAt - now, bans.versionOf(digest), noteOf(ban));
    for (const [bucket, endsAt] of shadows.endsAt)
      if (endsAt > now) add(SHADOWS_KEY, bucket, endsAt - now, shadows.versionOf(bucket), '');
    const { length } = this.#heard;
    return this.#run(WRITE_BACK, [String(length), ...this.#heard, ...entries.map(String)]);
  }

  async #run(script: StoreScript, args: readonly string[]): Promise<unknown> {
    try {
      const reply = await within(ANSWER_MS, this.#options.connection.run(script, CONTROL_KEYS, args));
      this.#pauseMs = POLL_EVERY_MS;
      return reply;
    } catch (error) {
      if (isErrorReply(error)) this.#pauseMs = Math.min(2 * this.#pauseMs, PAUSE_MS_MAX);
      return null;
    }
  }
}

/** @param gone what was removed, such as `ban DIGEST` */
function namesOf(kind: 'ban' | 'shadow' | 'counters', gone: readonly string[]): string[] {
  return gone.filter((what) => what.startsWith(`${kind} `)).map((what) => what.slice(kind.length + 1));
}

function isBetween(version: number, later: number): boolean {
  return version > 0 && version < later;
}

/** A ban or a shadow mode, as the store lists it. */
interface ControlEntry {
  readonly name: string;
  readonly version: number;
  /** On the clock of the store, or of this process if its clock is given. */
  readonly endsAt: Millis;
  readonly note: string;
}

/** @param reply alternating names, versions and texts @param storeNow both times of the same moment */
export function listed(reply: unknown, storeNow: unknown = 0, now: Millis = 0): ControlEntry[] {
  const fields = (reply as unknown[]).map(String);
  return Array.from({ length: fields.length / 3 }, (_, i) => {
    const [name = '', version, text = ''] = fields.slice(3 * i, 3 * i + 3);
    return { name, version: Number(version), ...readText(text, Number(storeNow) - now) };
  });
}

/** @param text end and note of an entry @param aheadMs how far the store's clock is ahead of this process */
export function readText(text: string, aheadMs: Millis = 0): Pick<ControlEntry, 'endsAt' | 'note'> {
  const at = text.indexOf(' ');
  return { endsAt: Number(text.slice(0, at)) - aheadMs, note: text.slice(at + 1) };
}
