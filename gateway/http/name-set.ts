/** A set of lower-case header names that finds a name in any case. */
export class NameSet {
  readonly #names: ReadonlySet<string>;

  /** @param names lower-case */
  constructor(names: Iterable<string>) {
    this.#names = new Set(names);
  }

  /** @returns the lower-case name; null: the set does not have it */
  find(name: string): string | null {
    const lower = name.toLowerCase();
    return this.#names.has(lower) ? lower : null;
  }
}
