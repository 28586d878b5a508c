/** Counts the clients whose first visit is stored on a day. There may be `newPerDay` of them, over all gateways. */
import type { VisitRule } from '#gateway/policy/regulars.ts';

export interface VisitsLog {
  warn(fields: object, message: string): void;
}

export class NewClients {
  readonly #log: VisitsLog | null;
  #day = 0;
  /** Number of those that all gateways have stored, as last heard. */
  #heard = 0;
  /** Number of those that are not in `#heard`. */
  #own = 0;
  #isFull = false;

  /** @param log null if nobody wants to know */
  constructor(log: VisitsLog | null) {
    this.#log = log;
  }

  /** @returns for how many of these clients there is room; it is taken */
  take(clients: number, day: number, { newPerDay }: VisitRule): number {
    // A clock that is corrected around midnight must not begin the day twice.
    if (day > this.#day || day < this.#day - 1) {
      this.forget();
      this.#day = day;
    }
    const room = Math.max(0, Math.min(clients, newPerDay - this.#heard - this.#own));
    this.#own += room;
    return room;
  }

  /** Begins again with all the room. */
  forget(): void {
    this.#day = 0;
    this.#heard = this.#own = 0;
    this.#isFull = false;
  }

  /** Gives back room that was not used. */
  give(clients: number, day: number): void {
    if (day === this.#day) this.#own -= clients;
  }

  /** @param stored number of those that all gateways have stored @param own how many of them took room here */
  hear(stored: number, own: number, day: number): void {
    if (day !== this.#day) return;
    this.#heard = Math.max(this.#heard, stored);
    this.#own -= own;
  }

  /** Tells once a day that there was no room. */
  tellFull({ newPerDay }: VisitRule): void {
    if (this.#isFull) return;
    this.#isFull = true;
    this.#log?.warn(
      { newPerDay },
      'as many new clients as regulars.newPerDay allows were stored today; further ones stay newcomers until tomorrow',
    );
  }
}
