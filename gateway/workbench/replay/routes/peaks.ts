/**
 * Counts the requests of each client on each route by window, and the maximum of any window, in a flat table of bounded
 * size. When it is full, only every second client is followed, then every fourth, and so on. Digests are as good as
 * random, so the rest is a fair sample.
 */
import type { DigestWords } from '#gateway/identity/digest.ts';
import type { Millis } from '#shared/clock.ts';

/** Number of entries, a power of two; at most half of them are used. 24 bytes each. */
const PLACES = 1_048_576;
/** Words of a record: the route plus one, two of the digest, the window, its requests, the maximum of any window. */
const WORDS = 6;
const A = 1;
const B = 2;
const WINDOW = 3;
const COUNT = 4;
const MOST = 5;
/** Spreads routes over the table. */
const ROUTE_STEP = 0x9e3779b1;

interface PeaksOptions {
  readonly windowMs: Millis;
  /** Called at the end of each window of a client. */
  readonly onWindow: (route: number, requests: number) => void;
  /** Number of entries in the table; a power of two. */
  readonly places?: number;
}

export class Peaks {
  readonly #windowMs: Millis;
  readonly #onWindow: PeaksOptions['onWindow'];
  #words: Uint32Array;
  #size = 0;
  /** Inverse of the sampling rate: one of this number of clients is followed. A power of two. */
  oneIn = 1;

  constructor({ windowMs, onWindow, places = PLACES }: PeaksOptions) {
    this.#windowMs = windowMs;
    this.#onWindow = onWindow;
    this.#words = new Uint32Array(places * WORDS);
  }

  /** Counts a request. Times must not decrease. */
  add(route: number, [a, b]: DigestWords, at: Millis): void {
    if ((a & (this.oneIn - 1)) !== 0) return;
    const words = this.#words;
    const window = Math.floor(at / this.#windowMs) >>> 0;
    const record = find(words, route + 1, a, b);
    if (words[record] === 0) {
      words[record] = route + 1;
      words[record + A] = a;
      words[record + B] = b;
      words[record + WINDOW] = window;
      words[record + COUNT] = 1;
      this.#size++;
      if (this.#size * 2 * WORDS > words.length) this.#thin();
    } else if (words[record + WINDOW] === window) {
      words[record + COUNT] = (words[record + COUNT] ?? 0) + 1;
    } else {
      this.#end(record);
      words[record + WINDOW] = window;
      words[record + COUNT] = 1;
    }
  }

  /** Ends all windows, and reports the maximum of each client. */
  end(onClient: (route: number, most: number) => void): void {
    const words = this.#words;
    for (let record = 0; record < words.length; record += WORDS) {
      if (words[record] === 0) continue;
      this.#end(record);
      onClient((words[record] ?? 0) - 1, words[record + MOST] ?? 0);
    }
  }

  #end(record: number): void {
    const words = this.#words;
    const count = words[record + COUNT] ?? 0;
    this.#onWindow((words[record] ?? 0) - 1, count);
    words[record + MOST] = Math.max(words[record + MOST] ?? 0, count);
    words[record + COUNT] = 0;
  }

  /** Drops every second client. */
  #thin(): void {
    this.oneIn *= 2;
    const old = this.#words;
    const words = new Uint32Array(old.length);
    this.#size = 0;
    for (let from = 0; from < old.length; from += WORDS) {
      const a = old[from + A] ?? 0;
      if (old[from] === 0 || (a & (this.oneIn - 1)) !== 0) continue;
      words.set(old.subarray(from, from + WORDS), find(words, old[from] ?? 0, a, old[from + B] ?? 0));
      this.#size++;
    }
    this.#words = words;
  }
}

/** Returns the index of a record, or an empty index for it. */
function find(words: Uint32Array, route: number, a: number, b: number): number {
  const mask = words.length / WORDS - 1;
  for (let place = (b ^ Math.imul(route, ROUTE_STEP)) & mask; ; place = (place + 1) & mask) {
    const record = place * WORDS;
    if (words[record] === 0) return record;
    if (words[record] === route && words[record + A] === a && words[record + B] === b) return record;
  }
}
