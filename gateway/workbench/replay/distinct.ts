/**
 * How many different clients? Exact up to EXACT_MAX; beyond that an estimate by HyperLogLog in 16 KiB, which is off by
 * less than 2 % in 98 of 100 cases. Digests are as good as random, so their bits are used as they are.
 */
import type { DigestWords } from '#gateway/identity/digest.ts';

export const EXACT_MAX = 4096;
const BUCKET_BITS = 14;
const BUCKETS = 2 ** BUCKET_BITS;
const WORD_BITS = 30;
/** Bias of the estimate for so many buckets. */
const ALPHA = 0.7213 / (1 + 1.079 / BUCKETS);

export class Distinct {
  #exact: Float64Array | null = new Float64Array(64);
  #size = 0;
  #buckets: Uint8Array | null = null;

  /** It is an estimate. */
  get isEstimate(): boolean {
    return this.#buckets !== null;
  }

  get count(): number {
    return this.#buckets === null ? this.#size : estimate(this.#buckets);
  }

  add([a, b]: DigestWords): void {
    if (this.#buckets !== null) {
      note(this.#buckets, a, b);
      return;
    }
    const exact = this.#exact;
    if (exact === null) return;
    // 52 of its bits: two of a few thousand digests that agree in them will not be seen. 0 marks an empty place.
    const key = a * 0x400000 + (b >>> 8) + 1;
    const mask = exact.length - 1;
    for (let at = (b >>> 8) & mask; ; at = (at + 1) & mask) {
      const found = exact[at];
      if (found === key) return;
      if (found !== 0) continue;
      exact[at] = key;
      this.#size++;
      if (this.#size * 2 > exact.length) this.#grow(exact);
      return;
    }
  }

  #grow(exact: Float64Array): void {
    if (this.#size > EXACT_MAX) {
      this.#buckets = new Uint8Array(BUCKETS);
      for (const key of exact) {
        if (key === 0) continue;
        const a = Math.floor((key - 1) / 0x400000);
        note(this.#buckets, a, ((key - 1) % 0x400000) << 8);
      }
      this.#exact = null;
      return;
    }
    const larger = new Float64Array(exact.length * 2);
    const mask = larger.length - 1;
    for (const key of exact) {
      if (key === 0) continue;
      let at = ((key - 1) % 0x400000) & mask;
      while (larger[at] !== 0) at = (at + 1) & mask;
      larger[at] = key;
    }
    this.#exact = larger;
  }
}

/** The first word chooses the bucket, the second the rank: the place of its first bit that is set. */
function note(buckets: Uint8Array, a: number, b: number): void {
  const bucket = a & (BUCKETS - 1);
  // What the exact table does not keep of the second word is left out here as well.
  const rank = Math.clz32(b >>> 8) - (32 - (WORD_BITS - 8)) + 1;
  if (rank > (buckets[bucket] ?? 0)) buckets[bucket] = rank;
}

function estimate(buckets: Uint8Array): number {
  let sum = 0;
  let empty = 0;
  for (const rank of buckets) {
    sum += 2 ** -rank;
    if (rank === 0) empty++;
  }
  const raw = (ALPHA * BUCKETS * BUCKETS) / sum;
  return Math.round(raw <= 2.5 * BUCKETS && empty > 0 ? BUCKETS * Math.log(BUCKETS / empty) : raw);
}
