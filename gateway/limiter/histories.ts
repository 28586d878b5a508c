/** The days of clients that this process knows (history.ts), in bounded memory (counter-table.ts). */
import type { Identity } from '#gateway/identity/digest.ts';
import { CounterTable } from './counter-table.ts';
import type { History } from './history.ts';

export class Histories {
  readonly #clientsMax: number;
  /** null until it is needed. */
  #table: CounterTable | null = null;

  /** @param clientsMax a power of two */
  constructor(clientsMax: number) {
    this.#clientsMax = clientsMax;
  }

  get size(): number {
    return this.#table?.size ?? 0;
  }

  /** @returns null if this process knows none */
  of({ words }: Identity): History | null {
    const place = this.#table?.find(...words) ?? -1;
    if (this.#table === null || place < 0) return null;
    return { last: this.#table.count(place), days: this.#table.slack(place) };
  }

  note({ words }: Identity, { last, days }: History): void {
    this.#table ??= new CounterTable(this.#clientsMax);
    const place = this.#table.find(...words);
    this.#table.set(place < 0 ? this.#table.insert(...words) : place, last, 0, days);
  }

  forget({ words }: Identity): void {
    this.#table?.delete(...words);
  }

  clear(): void {
    this.#table?.clear();
  }
}
