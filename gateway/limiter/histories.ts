/**
 * The days of clients that this process knows (history.ts), in bounded memory (digest-table.ts).
 *
 * If the store has lost its data, or a part of it, this process begins with an empty table, as the store does. The table
 * until then is kept until it is written back.
 */
import { type Identity, identityFrom, lastBits } from '#gateway/identity/digest.ts';
import { DigestTable, type Entry } from './digest-table.ts';
import type { History } from './history.ts';

export interface ClientHistory {
  readonly client: Identity;
  readonly history: History;
}

/** Some of the lost histories. */
export interface LostHistories {
  readonly clients: readonly ClientHistory[];
  /** Called when the store has them again. */
  readonly done: () => void;
}

interface Lost {
  readonly table: DigestTable;
  /** The records before this position are written back. */
  at: number;
}

export class Histories {
  readonly #clientsMax: number;
  /** null until it is needed. */
  #table: DigestTable | null = null;
  /** null if the store has lost nothing. */
  #lost: Lost | null = null;

  /** @param clientsMax a power of two */
  constructor(clientsMax: number) {
    this.#clientsMax = clientsMax;
  }

  get size(): number {
    return (this.#table?.size ?? 0) + (this.#lost?.table.size ?? 0);
  }

  /** @returns null if this process knows none */
  of({ words }: Identity): History | null {
    const entry = this.#table?.get(words) ?? this.#lost?.table.peek(words) ?? null;
    return entry === null ? null : historyOf(entry);
  }

  note({ digest, words }: Identity, { last, days }: History): void {
    this.#table ??= new DigestTable(this.#clientsMax);
    this.#table.put(words, last, lastBits(digest), days);
  }

  forget({ words }: Identity): void {
    this.#table?.delete(words);
    this.#lost?.table.delete(words);
  }

  clear(): void {
    this.#table = this.#lost = null;
  }

  /** Called when the store may have lost its data. If it does so again, all is written back from the beginning. */
  lose(): void {
    const table = this.#lost?.table ?? this.#table;
    this.#lost = table === null ? null : { table, at: 0 };
    this.#table = null;
  }

  /**
   * @param max how many clients are returned
   * @param isWanted whether a history is written back
   * @returns the next lost histories; null if all are written back
   */
  nextLost(max: number, isWanted: (history: History) => boolean): LostHistories | null {
    const lost = this.#lost;
    if (lost === null) return null;
    const { table } = lost;
    const clients: ClientHistory[] = [];
    let place = lost.at;
    for (; place < table.capacity && clients.length < max; place++) {
      const words = table.keyAt(place);
      const entry = words && table.peek(words);
      if (!entry || !isWanted(historyOf(entry))) continue;
      clients.push({ client: identityFrom(words, entry.until), history: historyOf(entry) });
    }
    if (clients.length === 0) {
      this.#lost = null;
      return null;
    }
    const done = (): void => {
      lost.at = place;
    };
    return { clients, done };
  }
}

function historyOf({ count, slack }: Entry): History {
  return { last: count, days: slack };
}
