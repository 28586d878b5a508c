/** Maps networks to values. The longest matching prefix wins; a lookup tries each prefix length in use once. */
import type { Network } from '#shared/client-address.ts';

interface OneLength<T> {
  readonly bits: number;
  readonly values: Map<string, T>;
}

export class NetworkTable<T> {
  readonly #lengths = new Map<number, OneLength<T>[]>();
  #size = 0;

  get size(): number {
    return this.#size;
  }

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
