/**
 * The counters of one name: one for each value of a label, in rows by another label if there is one. They are samples
 * themselves, so reading them every second makes no new labels.
 */
import { type Counter, counter } from '#gateway/part/sample.ts';

interface CountersOptions<Kind extends string> {
  readonly name: string;
  readonly help: string;
  readonly label: string;
  /** Values of the label that are shown before they count anything. */
  readonly kinds?: readonly Kind[];
  /** Label of the rows. The rows are bounded by the number of names in policy files, so they survive a reload. */
  readonly rows?: string;
}

export class Counters<Kind extends string> {
  readonly #options: CountersOptions<Kind>;
  readonly #rows = new Map<string, Map<Kind, Counter>>();

  constructor(options: CountersOptions<Kind>) {
    this.#options = options;
    if (options.rows === undefined) this.#add('');
  }

  get rows(): Iterable<string> {
    return this.#rows.keys();
  }

  /** Returns a counter, which is shown from then on, and its row with it. */
  of(kind: Kind, row = ''): Counter {
    const counters = this.#rows.get(row) ?? this.#add(row);
    let found = counters.get(kind);
    if (found === undefined) {
      found = this.#counter(kind, row);
      counters.set(kind, found);
    }
    return found;
  }

  samples(): Counter[] {
    return [...this.#rows.values()].flatMap((counters) => [...counters.values()]);
  }

  #add(row: string): Map<Kind, Counter> {
    const { kinds = [] } = this.#options;
    const counters = new Map(kinds.map((kind) => [kind, this.#counter(kind, row)]));
    this.#rows.set(row, counters);
    return counters;
  }

  #counter(kind: Kind, row: string): Counter {
    const { name, help, label, rows } = this.#options;
    return counter(name, help, 0, { ...(rows === undefined ? {} : { [rows]: row }), [label]: kind });
  }
}
