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
import type { Clock, Millis } from '#shared/clock.ts';
import { within } from '#shared/within.ts';
import type { Kind, Row, Rows } from './rows.ts';
import { CONTROL_KEYS, SYNC } from './scripts.ts';

const POLL_EVERY_MS: Millis = 500;
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
  #timer: NodeJS.Timeout | undefined;
  #isStopped = false;

  constructor(options: SyncOptions) {
    this.#options = options;
  }

  /** Begins to read rows. Resolves after the first attempt, even if the store did not answer. */
  async start(): Promise<void> {
    await this.poll();
    if (this.#isStopped) return;
    this.#timer = setTimeout(() => void this.start(), POLL_EVERY_MS).unref();
  }

  stop(): void {
    this.#isStopped = true;
    clearTimeout(this.#timer);
  }

  /** Applies a row that an operator has just made in the store, even if the store fails now. Never rejects. */
  async apply(row: Row): Promise<void> {
    this.#options.rows.take([row]);
    this.#own = [...this.#own, row].slice(-OWN_MAX);
    await this.poll();
    // The next poll forgets it again.
    this.#forgetCleared([row]);
  }

  /** Reads new rows. Never rejects: if the store does not answer, the last known state stays in force. */
  async poll(): Promise<void> {
    const { connection, rows, known, clock } = this.#options;
    rows.dropEnded();
    this.#forget(this.#cleared);
    this.#cleared = [];
    if (!connection.ready) return;
    const asked = this.#version;
    const sent = asked === ALL ? rows.all : this.#own;
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
    if (asked === ALL) known.forgetCounters();
    this.#forgetCleared(rows.take(readRows(reply, Number(storeNow) - clock())));
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
  #run(args: readonly string[]): Promise<unknown> {
    const { connection } = this.#options;
    return within(ANSWER_MS, connection.run(SYNC, CONTROL_KEYS, args)).catch(() => null);
  }
}

/** @returns the arguments with which the store gets a row back; nothing if it has ended */
function argsOf(row: Row, now: Millis): string[] {
  // Up to a millisecond more is left than there was, because Redis counts whole ones.
  const ms = Math.ceil(row.endsAt - now);
  return ms <= 0 ? [] : [keyOf(row), String(ms), String(row.version), textOf(row.note)];
}

/** @returns the name of a row in the store */
export function keyOf({ kind, name }: Pick<Row, 'kind' | 'name'>): string {
  return `${kind} ${name}`;
}

/** @returns the text of a row in the store, after its end */
export function textOf(note: string | null): string {
  return note === null ? '-' : `+${note}`;
}

/** @param reply of SYNC or LIST @param aheadMs how far the store's clock is ahead of this process */
export function readRows(reply: unknown, aheadMs: Millis = 0): Row[] {
  const fields = (reply as unknown[]).slice(2).map(String);
  return Array.from({ length: fields.length / 3 }, (_, i) => {
    const [key = '', version, text = ''] = fields.slice(3 * i, 3 * i + 3);
    return readRow(key, Number(version), text, aheadMs);
  });
}

export function readRow(key: string, version: number, text: string, aheadMs: Millis = 0): Row {
  const [kind = ''] = key.split(' ', 1);
  const at = text.indexOf(' ');
  const note = text.slice(at + 1);
  return {
    kind: kind as Kind,
    name: key.slice(kind.length + 1),
    version,
    endsAt: Number(text.slice(0, at)) - aheadMs,
    note: note.startsWith('+') ? note.slice(1) : null,
  };
}
