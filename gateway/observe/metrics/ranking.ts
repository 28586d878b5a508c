/**
 * Names that are counted most often, in tables of bounded size. A full table drops the names with the smallest counts,
 * and is not exact from then on: a name was counted at least as often as it says. Every half hour a new table begins, and
 * the one before it stays readable. So the counts cover the last 30 to 60 minutes. The tables change at the same time in
 * all processes.
 */
import type { Millis } from '#shared/clock.ts';

export interface Ranked {
  readonly name: string;
  /** A lower bound if the count is not exact. */
  readonly count: number;
  /** Whether no table can have counted the name before, and dropped it. */
  readonly isExact: boolean;
  /** A second count, since the name has its place. */
  readonly other: number;
  /** As given with the last count. */
  readonly label: string;
  /** The time of the last count. */
  readonly lastAt: Millis;
}

const TABLE_MS: Millis = 1_800_000;

/** @returns the start of the time that the tables cover, unless the gateway started later */
export function rankedSince(now: Millis): Millis {
  return (Math.floor(now / TABLE_MS) - 1) * TABLE_MS;
}

export class Ranking {
  readonly #places: number;
  #table: Table;
  #before: Table;
  #endsAt: Millis = 0;

  /** @param places number of names that a table keeps; it has up to twice as many */
  constructor(places: number) {
    this.#places = places;
    this.#table = new Table(places);
    this.#before = new Table(places);
  }

  get isEmpty(): boolean {
    return this.#table.size + this.#before.size === 0;
  }

  count(name: string, label: string, now: Millis): void {
    this.#turn(now);
    this.#table.count(name, label, now);
  }

  /** Adds to the second count of a name that has a place. */
  countOther(name: string): void {
    if (!this.#table.countOther(name)) this.#before.countOther(name);
  }

  /** @returns the names in descending order of their counts */
  list(now: Millis): Ranked[] {
    this.#turn(now);
    return mergeRanked([this.#table.list(), this.#before.list()]);
  }

  #turn(now: Millis): void {
    if (now < this.#endsAt) return;
    this.#before = now < this.#endsAt + TABLE_MS ? this.#table : new Table(this.#places);
    this.#table = new Table(this.#places);
    this.#endsAt = (Math.floor(now / TABLE_MS) + 1) * TABLE_MS;
  }
}

/**
 * Adds the counts of each name.
 *
 * @param cutAt a list of this length may have been cut
 * @returns the names in descending order of their counts
 */
export function mergeRanked(
  lists: readonly (readonly Ranked[])[],
  cutAt = Number.POSITIVE_INFINITY,
): Ranked[] {
  const merged = new Map<string, Ranked>();
  for (const one of lists.flat()) {
    const known = merged.get(one.name);
    if (known === undefined) merged.set(one.name, one);
    else {
      const { label, lastAt } = known.lastAt > one.lastAt ? known : one;
      const [count, other] = [known.count + one.count, known.other + one.other];
      const isExact = known.isExact && one.isExact;
      merged.set(one.name, { name: one.name, count, isExact, other, label, lastAt });
    }
  }
  // No name of a table that has dropped names is exact.
  for (const list of lists) {
    if (list.length !== cutAt && list.every(({ isExact }) => isExact)) continue;
    const listed = new Set(list.map(({ name }) => name));
    for (const one of merged.values())
      if (!listed.has(one.name)) merged.set(one.name, { ...one, isExact: false });
  }
  return [...merged.values()].sort((a, b) => b.count - a.count);
}

/** A name in a table, which counts it. */
interface Place {
  count: number;
  other: number;
  label: string;
  lastAt: Millis;
}

class Table {
  readonly #places: number;
  readonly #names = new Map<string, Place>();
  /** Whether it may have counted a name before. */
  #hasDropped = false;

  constructor(places: number) {
    this.#places = places;
  }

  get size(): number {
    return this.#names.size;
  }

  count(name: string, label: string, now: Millis): void {
    const place = this.#names.get(name) ?? this.#take(name);
    place.count++;
    place.label = label;
    place.lastAt = now;
  }

  /** @returns whether the name has a place */
  countOther(name: string): boolean {
    const place = this.#names.get(name);
    if (place !== undefined) place.other++;
    return place !== undefined;
  }

  list(): Ranked[] {
    const isExact = !this.#hasDropped;
    return Array.from(this.#names, ([name, place]) => ({ name, isExact, ...place }));
  }

  #take(name: string): Place {
    if (this.#names.size >= 2 * this.#places) this.#drop();
    const place = { count: 0, other: 0, label: '', lastAt: 0 };
    this.#names.set(name, place);
    return place;
  }

  /** Drops half of the names at once, so that a flood from many addresses seldom looks for the smallest counts. */
  #drop(): void {
    this.#hasDropped = true;
    const smallest = [...this.#names].sort(([, a], [, b]) => a.count - b.count).slice(0, this.#places);
    for (const [name] of smallest) this.#names.delete(name);
  }
}
