/**
 * What this process knows of counters that are not plain: records of the same bounded table (counter-table.ts), beside
 * those that say what is exhausted. Moments are those of the store's clock, whole.
 *
 * A sliding window has a record for each of its two aligned windows, told apart by whether the window's number is even;
 * the number stands where other records have their end. A token bucket has one, with its moment and its backlog.
 */
import type { Identity } from '#gateway/identity/digest.ts';
import type { Counter } from '#gateway/policy/counter.ts';
import type { Millis } from '#shared/clock.ts';
import type { Part } from './charge.ts';
import type { CounterTable } from './counter-table.ts';
import { drained, type Held } from './level.ts';

/** Of each a record of its own: what is exhausted has the bare key. 30 bits, as all words. */
const EVEN = 0x15555555;
const ODD = 0x2aaaaaaa;
const BACKLOG = 0x0f0f0f0f;
const WORD = 2 ** 32;

export class KnownLevels {
  readonly #table: CounterTable;

  constructor(table: CounterTable) {
    this.#table = table;
  }

  /** @param refill of a token bucket, in requests per window */
  held(part: Part, now: Millis, refill: number): Held {
    const { algorithm, windowMs } = part.policy;
    if (algorithm === 'token-bucket') return { a: this.#backlog(part, now, refill), b: 0 };
    const window = Math.floor(now / windowMs);
    return {
      a: this.#count(part, window),
      b: algorithm === 'fixed-window' ? 0 : this.#count(part, window - 1),
    };
  }

  /** Charges so many units at a moment of the store's clock; negative: gives them back. */
  charge(part: Part, units: number, now: Millis, refill: number): void {
    const { algorithm, windowMs } = part.policy;
    if (algorithm === 'token-bucket')
      this.#setBacklog(part, now, Math.max(0, this.#backlog(part, now, refill) + units * windowMs));
    else {
      const window = Math.floor(now / windowMs);
      this.#setCount(part, window, Math.max(0, this.#count(part, window) + units));
    }
  }

  /** Gives back what was charged at a moment of the store's clock, as far as that is not gone already. */
  giveBack(part: Part, units: number, chargedAt: Millis, now: Millis, refill: number): void {
    const { algorithm, windowMs } = part.policy;
    if (algorithm === 'token-bucket') {
      const left = drained(units * windowMs, now - chargedAt, refill);
      this.#setBacklog(part, now, Math.max(0, this.#backlog(part, now, refill) - left));
      return;
    }
    const window = Math.floor(chargedAt / windowMs);
    const count = this.#count(part, window);
    if (count > 0) this.#setCount(part, window, Math.max(0, count - units));
  }

  /** What the store held. */
  note(part: Part, { a, b }: Held, now: Millis): void {
    const { algorithm, windowMs, count } = part.policy;
    // Of what is given back again the last that was heard is the best that is known.
    const known = (window: number): number => (count === 'request' ? this.#count(part, window) : 0);
    if (algorithm === 'token-bucket') {
      const place = this.#find(part, BACKLOG);
      // Answers may come in another order.
      if (place >= 0 && this.#table.until(place) > now) return;
      const isSame = place >= 0 && this.#table.until(place) === now;
      this.#setBacklog(part, now, isSame ? Math.max(a, this.#backlog(part, now, 0)) : a);
      return;
    }
    const window = Math.floor(now / windowMs);
    this.#setCount(part, window, Math.max(a, known(window)));
    if (algorithm === 'sliding-window') this.#setCount(part, window - 1, Math.max(b, known(window - 1)));
  }

  forget({ words: [a, b, c, d] }: Identity, { stateWords: [e, f] }: Counter): void {
    for (const kind of [EVEN, ODD, BACKLOG]) this.#table.delete(a ^ e, b ^ f, c, d ^ kind);
  }

  #count(part: Part, window: number): number {
    const place = this.#find(part, window % 2 === 0 ? EVEN : ODD);
    return place < 0 || this.#table.until(place) !== window ? 0 : this.#table.count(place);
  }

  #setCount(part: Part, window: number, count: number): void {
    const kind = window % 2 === 0 ? EVEN : ODD;
    const place = this.#find(part, kind);
    // An earlier window than what is known is over.
    if (place >= 0 && this.#table.until(place) > window) return;
    if (count > 0 || place >= 0) this.#table.set(this.#placeOf(part, kind, place), count, window, 0);
  }

  #backlog(part: Part, now: Millis, refill: number): number {
    const place = this.#find(part, BACKLOG);
    if (place < 0) return 0;
    const backlog = this.#table.count(place) * WORD + this.#table.slack(place);
    return drained(backlog, now - this.#table.until(place), refill);
  }

  #setBacklog(part: Part, now: Millis, backlog: number): void {
    const place = this.#placeOf(part, BACKLOG, this.#find(part, BACKLOG));
    this.#table.set(place, Math.floor(backlog / WORD), now, backlog % WORD);
  }

  #find({ identity, counter }: Part, kind: number): number {
    const [a, b, c, d] = identity.words;
    const [e, f] = counter.stateWords;
    return this.#table.find(a ^ e, b ^ f, c, d ^ kind);
  }

  #placeOf({ identity, counter }: Part, kind: number, found: number): number {
    if (found >= 0) return found;
    const [a, b, c, d] = identity.words;
    const [e, f] = counter.stateWords;
    return this.#table.insert(a ^ e, b ^ f, c, d ^ kind);
  }
}
