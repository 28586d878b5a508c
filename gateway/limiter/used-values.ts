/**
 * The values that clients have used in the current window, for buckets that count different values. Bounded: when there
 * are too many, those of the bucket that got its last new value the longest time ago are dropped. Such a value then
 * counts as new.
 */

import { VALUE_LENGTH } from '#gateway/algorithms/distinct.ts';
import type { Millis } from '#shared/clock.ts';
import type { Bucket } from './charge.ts';

interface Used {
  /** A time in the window, on the store's clock. */
  readonly at: Millis;
  /** The digests, each with a space in front, as in the store. */
  readonly list: string;
}

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
    return this.#listOf(bucket, now).includes(` ${bucket.value}`);
  }

  /** Whether the value of a bucket is surely new. @param used number of values that the bucket has */
  lacks(bucket: Bucket, now: Millis, used: number): boolean {
    const list = this.#listOf(bucket, now);
    return countOf(list) >= used && !list.includes(` ${bucket.value}`);
  }

  /** Adds the value of a bucket. Does nothing if the bucket counts requests. */
  add(bucket: Bucket, at: Millis): void {
    const { value } = bucket;
    if (value === null || this.has(bucket, at)) return;
    this.replace(bucket, at, `${this.#listOf(bucket, at)} ${value}`);
  }

  /** Replaces all values of a bucket, unless those of a later window are known. */
  replace({ key, algorithm, policy }: Bucket, at: Millis, list: string): void {
    const before = this.#used.get(key);
    if (before !== undefined && algorithm.windowAt(before.at, policy) > algorithm.windowAt(at, policy))
      return;
    this.forget(key);
    this.#used.set(key, { at, list });
    this.#size += countOf(list);
    for (const oldest of this.#used.keys()) {
      if (this.#size <= this.#max) break;
      this.forget(oldest);
    }
  }

  forget(key: string): void {
    const used = this.#used.get(key);
    if (used === undefined) return;
    this.#used.delete(key);
    this.#size -= countOf(used.list);
  }

  /** Corrects the times of all windows. */
  moveTimes(byMs: Millis): void {
    for (const [key, { at, list }] of this.#used) this.#used.set(key, { at: at + byMs, list });
  }

  clear(): void {
    this.#used.clear();
    this.#size = 0;
  }

  #listOf({ key, algorithm, policy }: Bucket, now: Millis): string {
    const used = this.#used.get(key);
    if (used === undefined || algorithm.windowAt(used.at, policy) < algorithm.windowAt(now, policy))
      return '';
    return used.list;
  }
}

function countOf(list: string): number {
  return list.length / VALUE_LENGTH;
}
