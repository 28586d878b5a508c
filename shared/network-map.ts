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

/** Returns a value that all addresses with the same first bits share: a number of IPv4, a text of IPv6. */
function keyOf(bytes: readonly number[], bits: number): Key {
  if (bytes.length === 4) return wordOf(bytes, 0) & maskOf(bits);
  let key = '';
  for (let k = 0; 32 * k < bits; k++) {
    const word = wordOf(bytes, k) & maskOf(bits - 32 * k);
    key += String.fromCharCode(word >>> 16, word & 0xffff);
  }
  return key;
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
