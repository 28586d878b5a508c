/** Medians and quartiles. Means would be wrong, because on a shared machine all outliers are too high. */

/** @param q from 0 to 1; the result is interpolated between two values @returns NaN without values */
export function quantile(values: readonly number[], q: number): number {
  const sorted = values.filter(Number.isFinite).sort((a, b) => a - b);
  const at = (sorted.length - 1) * q;
  const low = sorted[Math.floor(at)];
  const high = sorted[Math.ceil(at)];
  return low === undefined || high === undefined ? Number.NaN : low + (high - low) * (at % 1);
}

export type Spread = Readonly<Record<'min' | 'p25' | 'median' | 'p75' | 'max', number>>;

export function spread(values: readonly number[]): Spread {
  const at = (q: number): number => quantile(values, q);
  return { min: at(0), p25: at(0.25), median: at(0.5), p75: at(0.75), max: at(1) };
}
