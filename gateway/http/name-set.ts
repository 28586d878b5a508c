/** A set of header names that lower-cases few names: most differ by length or first letter. */
export class NameSet {
  readonly #names: ReadonlySet<string>;
  readonly #marks = new Uint8Array(MARKS);

  /** @param names lower-case */
  constructor(names: Iterable<string>) {
    this.#names = new Set(names);
    for (const name of this.#names) this.#marks[markOf(name)] = 1;
  }

  /** @returns the lower-case name; null: the set does not have it */
  find(name: string): string | null {
    if (this.#marks[markOf(name)] !== 1) return null;
    const lower = name.toLowerCase();
    return this.#names.has(lower) ? lower : null;
  }
}

const MARKS = 8192;

/** Does not depend on case. */
function markOf(name: string): number {
  return ((name.length << 5) | (name.charCodeAt(0) & 31)) & (MARKS - 1);
}
