/**
 * A bounded map that forgets what was not used lately: entries live in a young and an old generation, a read moves an
 * entry to the young one, and when that is full it becomes the old one. No list to maintain, no entry is ever scanned.
 */
export class TwoGenerations<V> {
  readonly #generationMax: number;
  #young = new Map<string, V>();
  #old = new Map<string, V>();

  /** @param generationMax entries of one generation; at most twice as many are kept */
  constructor(generationMax: number) {
    this.#generationMax = generationMax;
  }

  get(key: string): V | undefined {
    const young = this.#young.get(key);
    if (young !== undefined) return young;
    const old = this.#old.get(key);
    if (old !== undefined) this.set(key, old);
    return old;
  }

  set(key: string, value: V): void {
    if (this.#young.size >= this.#generationMax) {
      this.#old = this.#young;
      this.#young = new Map();
    }
    this.#young.set(key, value);
  }

  get size(): number {
    return this.#young.size + this.#old.size;
  }

  clear(): void {
    this.#young.clear();
    this.#old.clear();
  }
}
