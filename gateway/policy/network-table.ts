/** Values by network: the longest prefix that holds an address wins. One look for each length of prefix in use. */
import type { Network } from '#shared/client-address.ts';

interface OneLength<T> {
  readonly bits: number;
  readonly values: Map<string, T>;
}

export class NetworkTable<T> {
  /** By number of bytes of an address, 4 or 16: the longest prefixes first. */
  readonly #lengths = new Map<number, OneLength<T>[]>();
  #size = 0;

  get size(): number {
    return this.#size;
  }

  /** @returns false when the very network is in the table already */
  add({ bytes, bits }: Network, value: T): boolean {
    let lengths = this.#lengths.get(bytes.length);
    if (lengths === undefined) {
      lengths = [];
      this.#lengths.set(bytes.length, lengths);
    }
    let same = lengths.find((one) => one.bits === bits);
    if (same === undefined) {
      same = { bits, values: new Map() };
      lengths.push(same);
      lengths.sort((a, b) => b.bits - a.bits);
    }
    const key = keyOf(bytes, bits);
    if (same.values.has(key)) return false;
    same.values.set(key, value);
    this.#size++;
    return true;
  }

  /** @param address its bytes, 4 or 16 */
  find(address: readonly number[]): T | undefined {
    for (const { bits, values } of this.#lengths.get(address.length) ?? []) {
      const value = values.get(keyOf(address, bits));
      if (value !== undefined) return value;
    }
    return undefined;
  }
}

function keyOf(bytes: readonly number[], bits: number): string {
  let key = '';
  for (let i = 0; i * 8 < bits; i++) {
    const left = bits - i * 8;
    key += String.fromCharCode((bytes[i] ?? 0) & (left >= 8 ? 0xff : (0xff << (8 - left)) & 0xff));
  }
  return key;
}
