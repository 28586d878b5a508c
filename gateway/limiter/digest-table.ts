/**
 * Records of fixed size in typed arrays, found by digest. When the table is full, the oldest record is dropped. So the
 * memory of a process for identities has a fixed size, and causes no garbage collection.
 *
 * Records are stored in a ring in the order of insertion; an index (open addressing, linear probing) finds them. A
 * record in the older half that is used moves to the front, so the oldest record has not been used recently. Memory is
 * reserved at once, and the system allocates it page by page as records are inserted.
 */
import type { DigestWords } from '#gateway/identity/digest.ts';

/** 16 of key, 8 of time, 4 of count, 4 of slack. */
const RECORD_BYTES = 32;
/** Two index entries of four bytes per record, so that probing stays short. */
export const BYTES_PER_RECORD = RECORD_BYTES + 8;

const WORDS = RECORD_BYTES / 4;
const DOUBLES = RECORD_BYTES / 8;
const COUNT = 6;
const SLACK = 7;
const UNTIL = 2;
/** Value of an empty index entry. Entries contain the position of a record plus one. */
const EMPTY = 0;

/** The numbers of a record. */
export interface Entry {
  count: number;
  until: number;
  slack: number;
}

export class DigestTable {
  readonly capacity: number;
  readonly #words: Uint32Array;
  readonly #doubles: Float64Array;
  readonly #index: Int32Array;
  readonly #mask: number;
  /** Position of the next record. */
  #next = 0;
  size = 0;
  /** The last answer. Each answer reuses it, so that none causes garbage. */
  readonly #entry: Entry = { count: 0, until: 0, slack: 0 };

  /** @param capacity number of records; a power of two */
  constructor(capacity: number) {
    if (capacity < 2 || (capacity & (capacity - 1)) !== 0) throw new RangeError('a power of two is needed');
    this.capacity = capacity;
    const records = new ArrayBuffer(capacity * RECORD_BYTES);
    this.#words = new Uint32Array(records);
    this.#doubles = new Float64Array(records);
    this.#index = new Int32Array(capacity * 2);
    this.#mask = capacity * 2 - 1;
  }

  /** @returns an object that is valid until the next call; null if the key is not in the table */
  get(key: DigestWords): Readonly<Entry> | null {
    const place = this.#find(key);
    return place < 0 ? null : this.#read(place);
  }

  /** The same, but it does not count as a use, and all records stay where they are. */
  peek(key: DigestWords): Readonly<Entry> | null {
    const place = this.#placeOf(key);
    return place < 0 ? null : this.#read(place);
  }

  /** @returns the key of the record at a position; null if there is none */
  keyAt(place: number): DigestWords | null {
    if (this.#entryAt(place) < 0) return null;
    const [a = 0, b = 0, c = 0, d = 0] = this.#words.subarray(place * WORDS, place * WORDS + 4);
    return [a, b, c, d];
  }

  put(key: DigestWords, count: number, until: number, slack: number): void {
    const found = this.#find(key);
    const place = found < 0 ? this.#insert(key) : found;
    this.#words[place * WORDS + COUNT] = count;
    this.#doubles[place * DOUBLES + UNTIL] = until;
    this.#words[place * WORDS + SLACK] = slack;
  }

  delete(key: DigestWords): void {
    const entry = this.#entryOf(key);
    const place = (this.#index[entry] ?? EMPTY) - 1;
    if (place < 0) return;
    this.#vacate(entry);
    this.size--;
  }

  clear(): void {
    if (this.size === 0) return;
    this.#index.fill(EMPTY);
    this.#next = 0;
    this.size = 0;
  }

  /** Adds to the times of all records. */
  moveTimes(byMs: number): void {
    if (this.size === 0) return;
    for (let at = UNTIL; at < this.#doubles.length; at += DOUBLES) {
      const until = this.#doubles[at] ?? 0;
      if (until !== 0) this.#doubles[at] = until + byMs;
    }
  }

  #read(place: number): Entry {
    const entry = this.#entry;
    entry.count = this.#words[place * WORDS + COUNT] ?? 0;
    entry.until = this.#doubles[place * DOUBLES + UNTIL] ?? 0;
    entry.slack = this.#words[place * WORDS + SLACK] ?? 0;
    return entry;
  }

  /** @returns the position of a record that is used now; -1 if there is none */
  #find(key: DigestWords): number {
    const place = this.#placeOf(key);
    if (place < 0) return -1;
    const age = (this.#next - place + this.capacity) & (this.capacity - 1);
    // Age 0 means that the next insertion overwrites it.
    if (age !== 0 && age <= this.capacity / 2) return place;
    return this.#moveToFront(place);
  }

  #placeOf(key: DigestWords): number {
    return (this.#index[this.#entryOf(key)] ?? EMPTY) - 1;
  }

  /** Adds a record. The key must not be in the table. @returns its position */
  #insert(key: DigestWords): number {
    const place = this.#take();
    this.#words.set(key, place * WORDS);
    this.#index[this.#entryOf(key)] = place + 1;
    this.size++;
    return place;
  }

  /** The index entry that holds this key, or the empty one where it belongs. */
  #entryOf([a, b, c, d]: DigestWords): number {
    const index = this.#index;
    const words = this.#words;
    for (let entry = a & this.#mask; ; entry = (entry + 1) & this.#mask) {
      const place = (index[entry] ?? EMPTY) - 1;
      if (place < 0) return entry;
      const at = place * WORDS;
      if (words[at] === a && words[at + 1] === b && words[at + 2] === c && words[at + 3] === d) return entry;
    }
  }

  /** Returns a free position. Drops the record that was there. */
  #take(): number {
    const place = this.#next;
    this.#next = (place + 1) & (this.capacity - 1);
    const entry = this.#entryAt(place);
    if (entry >= 0) {
      this.#vacate(entry);
      this.size--;
    }
    return place;
  }

  /** The index entry that points to a position; -1 if there is none. */
  #entryAt(place: number): number {
    const at = place * WORDS;
    for (let entry = (this.#words[at] ?? 0) & this.#mask; ; entry = (entry + 1) & this.#mask) {
      const found = this.#index[entry] ?? EMPTY;
      if (found === EMPTY) return -1;
      if (found === place + 1) return entry;
    }
  }

  #moveToFront(from: number): number {
    if (from === this.#next) {
      this.#next = (from + 1) & (this.capacity - 1);
      return from;
    }
    const place = this.#take();
    this.#words.copyWithin(place * WORDS, from * WORDS, (from + 1) * WORDS);
    this.#index[this.#entryAt(from)] = place + 1;
    return place;
  }

  /** Empties an index entry and closes the gap, so that probing still finds the others. */
  #vacate(entry: number): void {
    const index = this.#index;
    let gap = entry;
    for (let next = (gap + 1) & this.#mask; ; next = (next + 1) & this.#mask) {
      const found = index[next] ?? EMPTY;
      if (found === EMPTY) break;
      const home = (this.#words[(found - 1) * WORDS] ?? 0) & this.#mask;
      // An entry may move back only if its home position does not lie behind the gap.
      const distance = (next - home) & this.#mask;
      if (distance >= ((next - gap) & this.#mask)) {
        index[gap] = found;
        gap = next;
      }
    }
    index[gap] = EMPTY;
  }
}
