/**
 * Keeps the rows of a process the same as those in the store. Twice a second it asks for the newest version. If it has
 * not read it, it reads the rows that are new. While the store is unavailable, the last known rows stay in force.
 *
 * If the store does not list the version that the process has read, it has lost data, completely or in a failover. Then
 * the process sends all rows that it knows, so that the store has them again, and reads everything.
 */
import { identityOf } from '#gateway/identity/digest.ts';
import type { KnownCounters } from '#gateway/limiter/known-counters.ts';
import type { Counter } from '#gateway/policy/counter.ts';
import type { StoreConnection } from '#gateway/store/connection.ts';
import { isErrorReply } from '#gateway/store/fault.ts';
import type { Clock, Millis } from '#shared/clock.ts';
import { within } from '#shared/within.ts';
import type { Kind, Row, Rows } from './rows.ts';
import { CONTROL_KEYS, SYNC } from './scripts.ts';

const POLL_EVERY_MS: Millis = 500;
/** A store that answers with errors is asked less and less often, up to this interval. */
const PAUSE_MS_MAX: Millis = 5000;
const ANSWER_MS: Millis = 1000;
/** Instead of a version: the process has not read anything yet, or has to read everything again. */
const ALL = 'all';
/** Maximum number of rows of this gateway that the store may have lost before the process has read them. */
const OWN_MAX = 1000;

interface SyncOptions {
  readonly connection: StoreConnection;
  readonly clock: Clock;
  readonly known: KnownCounters;
  readonly rows: Rows;
  /** All counters of the policies in use. */
  readonly counters: () => readonly Counter[];
}

export class Sync {
  readonly #options: SyncOptions;
  /** The newest version that the process has read. */
  #version = ALL;
  /** Rows made at this gateway, until the store has answered that it has them. */
  #own: readonly Row[] = [];
  /** Digests of the clients whose counters the next poll forgets. */
  #cleared: readonly string[] = [];
  #pauseMs: Millis = POLL_EVERY_MS;
  #timer: NodeJS.Timeout | undefined;
  #isStopped = false;

  constructor(options: SyncOptions) {
    this.#options = options;
  }

  /** Begins to read rows. Resolves after the first attempt, even if the store did not answer. */
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

  /** Applies a row that an operator has just made in the store, even if the store fails now. Never rejects. */
  async apply(row: Row): Promise<void> {
    this.#options.rows.take([row]);
    this.#forgetCleared([row]);
    this.#own = [...this.#own, row].slice(-OWN_MAX);
    await this.poll();
  }

  /** Reads new rows. Never rejects: if the store does not answer, the last known state stays in force. */
  async poll(): Promise<void> {
    const { connection, rows, known, clock } = this.#options;
    rows.dropEnded(clock());
    this.#forget(this.#cleared);
    this.#cleared = [];
    if (!connection.ready) return;
    const asked = this.#version;
    const sent = asked === ALL ? [...rows.all, ...this.#own] : this.#own;
    const reply = await this.#run([asked, ...sent.flatMap((row) => argsOf(row, clock()))]);
    if (!Array.isArray(reply)) return;
    const [version, storeNow]: unknown[] = reply;
    if (version === '') {
      this.#version = ALL;
      await this.poll();
      return;
    }
    this.#own = this.#own.filter((row) => !sent.includes(row));
    if (storeNow === undefined) return;
    this.#version = String(version);
    const read = readRows(reply, clock());
    if (asked === ALL) {
      known.forgetCounters();
      // A row may have been made while this reply was on its way.
      rows.replace([...read, ...this.#own]);
    } else rows.take(read);
    this.#forgetCleared(read);
  }

  #forgetCleared(rows: readonly Row[]): void {
    const cleared = rows.filter(({ kind }) => kind === 'counters').map(({ name }) => name);
    this.#forget(cleared);
    // In a Cluster, a decision that another node made before the reset may arrive after it.
    this.#cleared = [...this.#cleared, ...cleared];
  }

  /** @param cleared digests of clients */
  #forget(cleared: readonly string[]): void {
    if (cleared.length === 0) return;
    const { known } = this.#options;
    const counters = this.#options.counters();
    for (const identity of cleared.map(identityOf)) {
      known.forget(identity, counters);
      // The store knows whether the credential is proven, or the client a regular.
      known.proofs.withdraw(identity);
    }
  }

  /** @returns null if the store did not answer; a later poll tries again */
  async #run(args: readonly string[]): Promise<unknown> {
    try {
      const reply = await within(ANSWER_MS, this.#options.connection.run(SYNC, CONTROL_KEYS, args));
      this.#pauseMs = POLL_EVERY_MS;
      return reply;
    } catch (error) {
      if (isErrorReply(error)) this.#pauseMs = Math.min(2 * this.#pauseMs, PAUSE_MS_MAX);
      return null;
    }
  }
}

/** @returns what the store needs to have a row; nothing if the row has ended */
function argsOf({ kind, name, endsAt, version, note }: Row, now: Millis): string[] {
  if (endsAt !== null && endsAt <= now) return [];
  const ms = endsAt === null ? 0 : Math.ceil(endsAt - now);
  return [kind, name, String(ms), String(version), note];
}

/** @param now time of this process when the reply arrived */
function readRows([, storeNow, bans, shadows, removed]: readonly unknown[], now: Millis): Row[] {
  const gone = (removed as unknown[]).map(String);
  return [
    ...listed('ban', bans, Number(storeNow) - now),
    ...listed('shadow', shadows, Number(storeNow) - now),
    ...Array.from({ length: gone.length / 2 }, (_, i) => {
      const [what = '', version] = gone.slice(2 * i, 2 * i + 2);
      const [kind = ''] = what.split(' ', 1);
      const name = what.slice(kind.length + 1);
      return { kind: kind as Kind, name, endsAt: null, note: '', version: Number(version) };
    }),
  ];
}

/** @param reply alternating names, versions and texts @param aheadMs how far the store's clock is ahead of this process */
export function listed(kind: Kind, reply: unknown, aheadMs: Millis = 0) {
  const fields = (reply as unknown[]).map(String);
  return Array.from({ length: fields.length / 3 }, (_, i) => {
    const [name = '', version, text = ''] = fields.slice(3 * i, 3 * i + 3);
    const { endsAt, note } = readText(text);
    return { kind, name, version: Number(version), endsAt: endsAt - aheadMs, note };
  });
}

/** @param text end and note of a row, as the store has it */
export function readText(text: string): { readonly endsAt: Millis; readonly note: string } {
  const at = text.indexOf(' ');
  return { endsAt: Number(text.slice(0, at)), note: text.slice(at + 1) };
}
