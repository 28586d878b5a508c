/**
 * Maps networks to values. The longest matching prefix wins.
 *
 * NetworkList collects networks. The table that it builds divides all addresses into ranges that do not overlap, sorted
 * by their first address. So a look-up is one binary search, and a million networks need at most 16 MB.
 */
import type { Network } from '#shared/client-address.ts';

/** Index of the value of addresses that are in no network. */
const NONE = 0;

export class NetworkTable<T> {
  /** Number of networks. */
  readonly size: number;
  readonly #values: readonly (T | undefined)[];
  readonly #ipv4: Ranges;
  readonly #ipv6: Ranges;

  constructor(size: number, values: readonly (T | undefined)[], ipv4: Ranges, ipv6: Ranges) {
    this.size = size;
    this.#values = values;
    this.#ipv4 = ipv4;
    this.#ipv6 = ipv6;
  }

  has(value: T): boolean {
    return this.#values.includes(value);
  }

  /** @param address 4 or 16 bytes */
  find(address: readonly number[]): T | undefined {
    const ranges = address.length === 4 ? this.#ipv4 : this.#ipv6;
    return this.#values[valueAt(ranges, address)];
  }
}

/** Networks of which a table is built. */
export class NetworkList<T> {
  readonly #ipv4 = new Prefixes(1);
  readonly #ipv6 = new Prefixes(4);
  readonly #values: (T | undefined)[] = [undefined];
  readonly #indexes = new Map<T, number>();

  get size(): number {
    return this.#ipv4.size + this.#ipv6.size;
  }

  /** @returns false if the list already has the network, which keeps its value */
  add(network: Network, value: T): boolean {
    let index = this.#indexes.get(value);
    if (index === undefined) {
      index = this.#values.push(value) - 1;
      this.#indexes.set(value, index);
    }
    return this.#prefixesFor(network).add(network, index);
  }

  /** Returns the value of exactly this network. */
  valueOf(network: Network): T | undefined {
    return this.#values[this.#prefixesFor(network).valueOf(network)];
  }

  table(): NetworkTable<T> {
    return new NetworkTable(this.size, this.#values, this.#ipv4.ranges(), this.#ipv6.ranges());
  }

  #prefixesFor({ bytes }: Network): Prefixes {
    return bytes.length === 4 ? this.#ipv4 : this.#ipv6;
  }
}

interface Ranges {
  /** Number of 32-bit words of an address. */
  readonly width: number;
  /** First addresses of the ranges, in ascending order. A range ends where the next one begins. */
  readonly starts: Uint32Array;
  readonly values: Uint32Array;
}

/** The address that is looked up, as words. A look-up is synchronous, so all share it. */
const WANTED = new Uint32Array(4);

function valueAt({ width, starts, values }: Ranges, address: readonly number[]): number {
  for (let k = 0; k < width; k++) WANTED[k] = wordOf(address, k);
  let low = 0;
  let high = values.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (compare(starts, middle * width, WANTED, 0, width) <= 0) low = middle + 1;
    else high = middle;
  }
  return low === 0 ? NONE : (values[low - 1] ?? NONE);
}

/** Prefixes of one family with the indexes of their values, in the order in which they were added. */
class Prefixes {
  readonly #width: number;
  size = 0;
  #capacity = 0;
  #words = new Uint32Array(0);
  #bits = new Uint32Array(0);
  #values = new Uint32Array(0);
  /** A hash table with open addressing of prefixes by their place, from 1; 0 is free. It is at most half full. */
  #slots = new Uint32Array(0);

  constructor(width: number) {
    this.#width = width;
  }

  add(network: Network, value: number): boolean {
    const slot = this.#slotFor(network);
    if (this.#slots[slot] !== 0) return false;
    this.#values[this.size] = value;
    this.#slots[slot] = ++this.size;
    return true;
  }

  valueOf(network: Network): number {
    const place = this.#slots[this.#slotFor(network)] ?? 0;
    return place === 0 ? NONE : (this.#values[place - 1] ?? NONE);
  }

  /** Writes the prefix behind the last one, and returns the slot of an equal one, or a free one. */
  #slotFor({ bytes, bits }: Network): number {
    if (this.size === this.#capacity) this.#grow();
    const width = this.#width;
    for (let k = 0; k < width; k++)
      this.#words[this.size * width + k] = wordOf(bytes, k) & maskOf(bits - 32 * k);
    this.#bits[this.size] = bits;
    return this.#slotOf(this.size);
  }

  #slotOf(place: number): number {
    const width = this.#width;
    const words = this.#words;
    const last = this.#slots.length - 1;
    let hash = this.#bits[place] ?? 0;
    for (let k = 0; k < width; k++) {
      hash = Math.imul(hash ^ (words[place * width + k] ?? 0), 0x9e3779b1);
      // The last bits of most networks are zero, and so are those of the product.
      hash = Math.imul(hash ^ (hash >>> 15), 0x85ebca6b);
      hash ^= hash >>> 13;
    }
    let slot = hash & last;
    for (;;) {
      const other = (this.#slots[slot] ?? 0) - 1;
      if (other < 0) return slot;
      const isSame =
        this.#bits[other] === this.#bits[place] &&
        compare(words, other * width, words, place * width, width) === 0;
      if (isSame) return slot;
      slot = (slot + 1) & last;
    }
  }

  #grow(): void {
    this.#capacity = Math.max(16, this.#capacity * 2);
    this.#words = grown(this.#words, this.#capacity * this.#width);
    this.#bits = grown(this.#bits, this.#capacity);
    this.#values = grown(this.#values, this.#capacity);
    this.#slots = new Uint32Array(this.#capacity * 2);
    for (let place = 0; place < this.size; place++) this.#slots[this.#slotOf(place)] = place + 1;
  }

  /**
   * Walks through the prefixes in the order of their first address. A prefix within another one begins a range, and so
   * does the address behind it.
   */
  ranges(): Ranges {
    const width = this.#width;
    const words = this.#words;
    const found = new RangeList(width, this.size);
    /** Places of the prefixes that contain the current address, from the widest to the narrowest, and where they end. */
    const open: number[] = [];
    const ends = new Uint32Array((32 * width + 1) * width);
    const close = (): void => {
      open.pop();
      const inner = open.at(-1);
      found.addBehind(ends, open.length * width, inner === undefined ? NONE : (this.#values[inner] ?? NONE));
    };
    for (const place of this.#sorted()) {
      const at = place * width;
      while (open.length > 0 && compare(ends, (open.length - 1) * width, words, at, width) < 0) close();
      for (let k = 0; k < width; k++)
        ends[open.length * width + k] = (words[at + k] ?? 0) | ~maskOf((this.#bits[place] ?? 0) - 32 * k);
      open.push(place);
      found.add(words, at, this.#values[place] ?? NONE);
    }
    while (open.length > 0) close();
    return found.finished();
  }

  /** Places by first address, and the wider prefix first. */
  #sorted(): Uint32Array {
    let order: Uint32Array = new Uint32Array(this.size);
    for (let i = 0; i < order.length; i++) order[i] = i;
    order = sortedBy(order, this.#bits, 1, 0, 0);
    for (let byte = this.#width * 4 - 1; byte >= 0; byte--)
      order = sortedBy(order, this.#words, this.#width, byte >> 2, 24 - 8 * (byte & 3));
    return order;
  }
}

/**
 * One step of a radix sort: sorts places by 8 bits of one
 * of their words, and keeps the order of those with the same bits.
 */
function sortedBy(
  order: Uint32Array,
  words: Uint32Array,
  width: number,
  k: number,
  shift: number,
): Uint32Array {
  const next = new Uint32Array(257);
  for (const place of order) {
    const digit = ((words[place * width + k] ?? 0) >>> shift) & 0xff;
    next[digit + 1] = (next[digit + 1] ?? 0) + 1;
  }
  // All places have the same digit.
  if (next.includes(order.length)) return order;
  for (let i = 1; i < next.length; i++) next[i] = (next[i] ?? 0) + (next[i - 1] ?? 0);
  const sorted = new Uint32Array(order.length);
  for (const place of order) {
    const digit = ((words[place * width + k] ?? 0) >>> shift) & 0xff;
    const to = next[digit] ?? 0;
    sorted[to] = place;
    next[digit] = to + 1;
  }
  return sorted;
}

/** Collects ranges in the order of their first address. */
class RangeList {
  readonly #width: number;
  readonly #starts: Uint32Array;
  readonly #values: Uint32Array;
  #size = 0;

  /** @param prefixes each begins at most two ranges */
  constructor(width: number, prefixes: number) {
    this.#width = width;
    this.#starts = new Uint32Array((2 * prefixes + 1) * width);
    this.#values = new Uint32Array(2 * prefixes + 1);
  }

  /** Adds a range that begins at an address, which replaces one that begins there too. */
  add(words: Uint32Array, at: number, value: number): void {
    const width = this.#width;
    const last = (this.#size - 1) * width;
    if (this.#size > 0 && compare(this.#starts, last, words, at, width) === 0) this.#size--;
    if ((this.#size === 0 ? NONE : this.#values[this.#size - 1]) === value) return;
    for (let k = 0; k < width; k++) this.#starts[this.#size * width + k] = words[at + k] ?? 0;
    this.#values[this.#size++] = value;
  }

  /** Adds a range that begins behind an address. */
  addBehind(words: Uint32Array, at: number, value: number): void {
    const next = words.slice(at, at + this.#width);
    for (let k = this.#width - 1; k >= 0; k--) {
      next[k] = (next[k] ?? 0) + 1;
      if (next[k] !== 0) {
        this.add(next, 0, value);
        return;
      }
    }
    // There is nothing behind the last address.
  }

  finished(): Ranges {
    return {
      width: this.#width,
      starts: this.#starts.slice(0, this.#size * this.#width),
      values: this.#values.slice(0, this.#size),
    };
  }
}

function compare(a: Uint32Array, i: number, b: Uint32Array, j: number, width: number): number {
  for (let k = 0; k < width; k++) {
    const difference = (a[i + k] ?? 0) - (b[j + k] ?? 0);
    if (difference !== 0) return difference;
  }
  return 0;
}

/** Returns the 32 bits of an address at four of its bytes. */
function wordOf(bytes: readonly number[], k: number): number {
  const i = 4 * k;
  return (
    ((bytes[i] ?? 0) << 24) | ((bytes[i + 1] ?? 0) << 16) | ((bytes[i + 2] ?? 0) << 8) | (bytes[i + 3] ?? 0)
  );
}

/** Returns a word whose first bits are set. */
function maskOf(bits: number): number {
  return bits <= 0 ? 0 : bits >= 32 ? -1 : -1 << (32 - bits);
}

function grown(from: Uint32Array, length: number): Uint32Array<ArrayBuffer> {
  const to = new Uint32Array(length);
  to.set(from);
  return to;
}
