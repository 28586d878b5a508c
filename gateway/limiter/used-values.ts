/**
 * The values that clients have used in the current window, for buckets that count different values. Bounded: when there
 * are too many, those of the bucket that got its last new value the longest time ago are dropped. Such a value then
 * counts as new.
 */

import type { Millis } from '#shared/clock.ts';
import type { Bucket } from './charge.ts';

interface Used {
  /** A time in the window, on the store's clock. */
  readonly at: Millis;
  /** The digests. */
  readonly values: Set<string>;
}

const NO_VALUES: ReadonlySet<string> = new Set();

export class UsedValues {
  readonly #max: number;
  /** By the keys of the buckets. */
  readonly #used = new Map<string, Used>();
  #size = 0;

  constructor(max: number) {
    this.#max = max;
  }

  get size(): number {
    return this.#size;
  }

  /** Whether the value of a bucket is known to be used in the window of a time. */
  has(bucket: Bucket, now: Millis): boolean {
    return bucket.value !== null && this.#valuesOf(bucket, now).has(bucket.value);
  }

  /** Whether the value of a bucket is surely new. @param used number of values that the bucket has */
  lacks(bucket: Bucket, now: Millis, used: number): boolean {
    return this.#valuesOf(bucket, now).size >= used && !this.has(bucket, now);
  }

  /** Adds the value of a bucket. Does nothing if the bucket counts requests. */
  add(bucket: Bucket, at: Millis): void {
    const { key, value } = bucket;
    if (value === null || this.has(bucket, at)) return;
    const used = this.#used.get(key);
    if (used === undefined || this.#isEarlier(used, bucket, at)) {
      this.replace(bucket, at, [value]);
      return;
    }
    // The bucket with the newest value is the last of the map.
    this.#used.delete(key);
    this.#used.set(key, { at, values: used.values.add(value) });
    this.#size++;
    this.#dropOldest();
  }

  /** Replaces all values of a bucket, unless those of a later window are known. */
  replace({ key, algorithm, policy }: Bucket, at: Millis, values: readonly string[]): void {
    const before = this.#used.get(key);
    if (before !== undefined && algorithm.windowAt(before.at, policy) > algorithm.windowAt(at, policy))
      return;
    this.forget(key);
    const used = { at, values: new Set(values) };
    this.#used.set(key, used);
    this.#size += used.values.size;
    this.#dropOldest();
  }

  forget(key: string): void {
    const used = this.#used.get(key);
    if (used === undefined) return;
    this.#used.delete(key);
    this.#size -= used.values.size;
  }

  /** Corrects the times of all windows. */
  moveTimes(byMs: Millis): void {
    for (const [key, { at, values }] of this.#used) this.#used.set(key, { at: at + byMs, values });
  }

  clear(): void {
    this.#used.clear();
    this.#size = 0;
  }

  #valuesOf(bucket: Bucket, now: Millis): ReadonlySet<string> {
    const used = this.#used.get(bucket.key);
    return used === undefined || this.#isEarlier(used, bucket, now) ? NO_VALUES : used.values;
  }

  /** Whether values are those of a window before a time. */
  #isEarlier({ at }: Used, { algorithm, policy }: Bucket, now: Millis): boolean {
    return algorithm.windowAt(at, policy) < algorithm.windowAt(now, policy);
  }

  #dropOldest(): void {
    for (const oldest of this.#used.keys()) {
      if (this.#size <= this.#max) break;
      this.forget(oldest);
    }
  }
}
