/**
 * The days of clients that this process knows (history.ts), in bounded memory (counter-table.ts).
 *
 * If the store has lost its data, or a part of it, this process begins with an empty table, as the store does. The table
 * until then is kept until it is written back.
 */
import { type Identity, identityFrom, lastBits } from '#gateway/identity/digest.ts';
import { CounterTable } from './counter-table.ts';
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
  readonly table: CounterTable;
  /** The records before this position are written back. */
  at: number;
}

export class Histories {
  readonly #clientsMax: number;
  /** null until it is needed. */
  #table: CounterTable | null = null;
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
    const place = this.#table?.find(...words) ?? -1;
    if (this.#table !== null && place >= 0) return historyAt(this.#table, place);
    const lostAt = this.#lost?.table.placeOf(...words) ?? -1;
    return this.#lost === null || lostAt < 0 ? null : historyAt(this.#lost.table, lostAt);
  }

  note({ digest, words }: Identity, { last, days }: History): void {
    this.#table ??= new CounterTable(this.#clientsMax);
    const place = this.#table.find(...words);
    this.#table.set(place < 0 ? this.#table.insert(...words) : place, last, lastBits(digest), days);
  }

  forget({ words }: Identity): void {
    this.#table?.delete(...words);
    this.#lost?.table.delete(...words);
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
      const history = historyAt(table, place);
      if (words === null || !isWanted(history)) continue;
      clients.push({ client: identityFrom(words, table.until(place)), history });
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

function historyAt(table: CounterTable, place: number): History {
  return { last: table.count(place), days: table.slack(place) };
}
