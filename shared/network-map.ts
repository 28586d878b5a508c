/**
 * Networks and what they stand for; the longest prefix of an address wins. There is one Map for each length of prefix,
 * so a look-up tries each length in use once, however many networks there are.
 */
import type { Network } from './client-address.ts';

interface Prefixes<T> {
  readonly bits: number;
  readonly values: Map<Key, T>;
}

type Key = number | string;

export class NetworkMap<T extends NonNullable<unknown>> {
  /** The lengths of each family, longest first. */
  readonly #ipv4: Prefixes<T>[] = [];
  readonly #ipv6: Prefixes<T>[] = [];
  #size = 0;

  /** Number of networks. */
  get size(): number {
    return this.#size;
  }

  /** @returns false if the map already has the network, which keeps its value */
  add(network: Network, value: T): boolean {
    const { values } = this.#prefixesOf(network) ?? this.#addLength(network);
    const key = keyOf(network.bytes, network.bits);
    if (values.has(key)) return false;
    values.set(key, value);
    this.#size++;
    return true;
  }

  /** Returns the value of exactly this network. */
  get(network: Network): T | undefined {
    return this.#prefixesOf(network)?.values.get(keyOf(network.bytes, network.bits));
  }

  delete(network: Network): void {
    const prefixes = this.#prefixesOf(network);
    if (prefixes?.values.delete(keyOf(network.bytes, network.bits)) !== true) return;
    this.#size--;
    const lengths = this.#lengthsOf(network.bytes);
    if (prefixes.values.size === 0) lengths.splice(lengths.indexOf(prefixes), 1);
  }

  clear(): void {
    this.#ipv4.length = 0;
    this.#ipv6.length = 0;
    this.#size = 0;
  }

  /** @param address 4 or 16 bytes */
  find(address: readonly number[]): T | undefined {
    for (const { bits, values } of this.#lengthsOf(address)) {
      const found = values.get(keyOf(address, bits));
      if (found !== undefined) return found;
    }
    return undefined;
  }

  #lengthsOf({ length }: readonly number[]): Prefixes<T>[] {
    return length === 4 ? this.#ipv4 : this.#ipv6;
  }

  #prefixesOf({ bytes, bits }: Network): Prefixes<T> | undefined {
    return this.#lengthsOf(bytes).find((prefixes) => prefixes.bits === bits);
  }

  #addLength({ bytes, bits }: Network): Prefixes<T> {
    const added = { bits, values: new Map<Key, T>() };
    const lengths = this.#lengthsOf(bytes);
    lengths.push(added);
    lengths.sort((a, b) => b.bits - a.bits);
    return added;
  }
}

/** A number holds so many bits of a prefix exactly, and is found faster than a text. Most prefixes are not longer. */
const BITS_OF_NUMBER = 52;

/** Returns a value that all addresses with the same first bits share. */
function keyOf(bytes: readonly number[], bits: number): Key {
  const first = wordOf(bytes, 0) & maskOf(bits);
  if (bits <= 32) return first;
  const second = wordOf(bytes, 1) & maskOf(bits - 32);
  if (bits <= BITS_OF_NUMBER) return (first >>> 0) * 2 ** 20 + (second >>> 12);
  const third = wordOf(bytes, 2) & maskOf(bits - 64);
  const fourth = wordOf(bytes, 3) & maskOf(bits - 96);
  return textOf(first) + textOf(second) + textOf(third) + textOf(fourth);
}

function textOf(word: number): string {
  return String.fromCharCode(word >>> 16, word & 0xffff);
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
