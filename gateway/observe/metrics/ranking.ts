/**
 * Names that are counted most often, in tables of bounded size (space-saving algorithm): a new name takes the place of
 * the one with the smallest count, and inherits this count, so that it is not replaced at once. What is shown is the
 * count without the inherited one: the name was counted at least so often. Every half hour a new table begins, and the
 * one before it stays readable. So the counts cover the last 30 to 60 minutes. The tables change at the same time in
 * all processes.
 */
import type { Millis } from '#shared/clock.ts';

export interface Ranked {
  readonly name: string;
  /** A lower bound if the count is not exact. */
  readonly count: number;
  /** false if a table may have counted the name before, and dropped it */
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

  /** @param places number of names in a table */
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
  // In a table that has dropped names, the name in the place of the last one has inherited a count.
  for (const list of lists) {
    if (list.length !== cutAt && list.every(({ isExact }) => isExact)) continue;
    const listed = new Set(list.map(({ name }) => name));
    for (const one of merged.values())
      if (!listed.has(one.name)) merged.set(one.name, { ...one, isExact: false });
  }
  return [...merged.values()].sort((a, b) => b.count - a.count);
}

/** Arrays instead of objects: a flood from many addresses searches for the smallest count with each denial. */
class Table {
  readonly #slots = new Map<string, number>();
  readonly #names: string[] = [];
  readonly #labels: string[] = [];
  /** Including the inherited ones. */
  readonly #counts: Float64Array;
  readonly #inherited: Float64Array;
  readonly #others: Float64Array;
  readonly #lastAt: Float64Array;

  constructor(places: number) {
    this.#counts = new Float64Array(places);
    this.#inherited = new Float64Array(places);
    this.#others = new Float64Array(places);
    this.#lastAt = new Float64Array(places);
  }

  get size(): number {
    return this.#names.length;
  }

  count(name: string, label: string, now: Millis): void {
    const slot = this.#slots.get(name) ?? this.#take(name);
    this.#counts[slot] = (this.#counts[slot] ?? 0) + 1;
    this.#labels[slot] = label;
    this.#lastAt[slot] = now;
  }

  /** @returns whether the name has a place */
  countOther(name: string): boolean {
    const slot = this.#slots.get(name);
    if (slot === undefined) return false;
    this.#others[slot] = (this.#others[slot] ?? 0) + 1;
    return true;
  }

  list(): Ranked[] {
    return this.#names.map((name, slot) => ({
      name,
      count: (this.#counts[slot] ?? 0) - (this.#inherited[slot] ?? 0),
      isExact: this.#inherited[slot] === 0,
      other: this.#others[slot] ?? 0,
      label: this.#labels[slot] ?? '',
      lastAt: this.#lastAt[slot] ?? 0,
    }));
  }

  #take(name: string): number {
    const isFull = this.#names.length >= this.#counts.length;
    const slot = isFull ? this.#smallest() : this.#names.length;
    this.#slots.delete(this.#names[slot] ?? '');
    this.#slots.set(name, slot);
    this.#names[slot] = name;
    this.#inherited[slot] = this.#counts[slot] ?? 0;
    this.#others[slot] = 0;
    return slot;
  }

  #smallest(): number {
    let found = 0;
    for (let slot = 1; slot < this.#counts.length; slot++)
      if ((this.#counts[slot] ?? 0) < (this.#counts[found] ?? 0)) found = slot;
    return found;
  }
}
