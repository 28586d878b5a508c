/**
 * The days on which a client had good replies, from which regulars are known (gateway/policy/regulars.ts). A day is a UTC
 * day of the store's clock. visits.ts does the same in Redis.
 */
import { type Identity, identityFrom, lastBits } from '#gateway/identity/digest.ts';
import { DAY_MS, HISTORY_DAYS, type VisitRule } from '#gateway/policy/groups.ts';
import type { Millis } from '#shared/clock.ts';
import { DigestTable, type Entry } from './digest-table.ts';

export function dayOf(at: Millis): number {
  return Math.floor(at / DAY_MS);
}

/** The days of one client. */
export interface History {
  readonly last: number;
  /** Bit n stands for the day n days before the last one. */
  readonly days: number;
}

/** Adds a day. @param history null if there is none */
export function visitedOn(day: number, history: History | null): History {
  // A day that is far ahead is from a clock that was wrong.
  if (history === null || Math.abs(day - history.last) >= HISTORY_DAYS) return { last: day, days: 1 };
  const { last, days } = history;
  if (day > last) return { last: day, days: ((days * 2 ** (day - last)) % 2 ** HISTORY_DAYS) + 1 };
  const bit = 2 ** (last - day);
  // A gateway whose clock is slow may report a day late.
  return Math.floor(days / bit) % 2 === 0 ? { last, days: days + bit } : history;
}

/** @returns the days, in their order */
export function daysOf({ last, days }: History): number[] {
  return Array.from({ length: HISTORY_DAYS }, (_, i) => HISTORY_DAYS - 1 - i).flatMap((ago) =>
    Math.floor(days / 2 ** ago) % 2 === 1 ? last - ago : [],
  );
}

/** @returns the day from which the client is no regular any more; null if it is none now */
export function regularUntil({ last, days }: History, { visits, days: within }: VisitRule): number | null {
  let found = 0;
  for (let ago = 0; ago < within; ago++)
    if (Math.floor(days / 2 ** ago) % 2 === 1 && ++found === visits) return last - ago + within;
  return null;
}

/** @returns the key of the days of a client in the store */
export function historyKey({ digest }: Identity): string {
  return `fg:{${digest}}:days`;
}

/** @returns what the store has under `historyKey` */
export function packed({ last, days }: History): number {
  return last * 2 ** HISTORY_DAYS + days;
}

export function unpacked(packed: number): History {
  return { last: Math.floor(packed / 2 ** HISTORY_DAYS), days: packed % 2 ** HISTORY_DAYS };
}

export interface ClientHistory {
  readonly client: Identity;
  readonly history: History;
}

/** The days of clients that this process knows, in bounded memory. A client without a day is one that is not stored. */
export class Histories {
  readonly #clientsMax: number;
  /** null until it is needed. */
  #table: DigestTable | null = null;
  /** Whether the store may have lost its data, so that all is to be written back. */
  areLost = false;

  /** @param clientsMax a power of two */
  constructor(clientsMax: number) {
    this.#clientsMax = clientsMax;
  }

  get size(): number {
    return this.#table?.size ?? 0;
  }

  /** @returns null if this process knows none */
  of({ words }: Identity): History | null {
    const entry = this.#table?.peek(words) ?? null;
    return entry === null ? null : historyOf(entry);
  }

  note({ digest, words }: Identity, { last, days }: History): void {
    this.#table ??= new DigestTable(this.#clientsMax);
    this.#table.put(words, last, lastBits(digest), days);
  }

  forget({ words }: Identity): void {
    this.#table?.delete(words);
  }

  clear(): void {
    this.#table = null;
  }

  /** Yields all that are stored. */
  *stored(): Iterable<ClientHistory> {
    const table = this.#table;
    for (let place = 0; table !== null && table === this.#table && place < table.capacity; place++) {
      const words = table.keyAt(place);
      const entry = words && table.peek(words);
      if (entry && entry.slack > 0)
        yield { client: identityFrom(words, entry.until), history: historyOf(entry) };
    }
  }
}

function historyOf({ count, slack }: Entry): History {
  return { last: count, days: slack };
}
