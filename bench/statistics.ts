/** Medians and spread: a shared machine has outliers in one direction only, so no means. */

/** @param q from 0 to 1; linear between neighbours; NaN of nothing */
export function quantile(values: readonly number[], q: number): number {
  const sorted = values.filter(Number.isFinite).sort((a, b) => a - b);
  const at = (sorted.length - 1) * q;
  const low = sorted[Math.floor(at)];
  const high = sorted[Math.ceil(at)];
  return low === undefined || high === undefined ? Number.NaN : low + (high - low) * (at % 1);
}

export function median(values: readonly number[]): number {
  return quantile(values, 0.5);
}

export interface Spread {
  readonly min: number;
  readonly p25: number;
  readonly median: number;
  readonly p75: number;
  readonly max: number;
}

export function spread(values: readonly number[]): Spread {
  return {
    min: quantile(values, 0),
    p25: quantile(values, 0.25),
    median: quantile(values, 0.5),
    p75: quantile(values, 0.75),
    max: quantile(values, 1),
  };
}

/** Of the quotients of pairs taken in the same round: what disturbed one disturbed the other. */
export function pairedRatio(ours: readonly number[], theirs: readonly number[]): Spread {
  return spread(ours.map((value, i) => value / (theirs[i] ?? Number.NaN)));
}
