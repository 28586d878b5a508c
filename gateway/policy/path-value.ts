import { AMBIGUOUS, type PairValue } from '#gateway/identity/pairs.ts';
import { caseless, meaningOf, withoutParameters, withoutSegmentParameters } from './target.ts';

/**
 * Returns the value without segment parameters, because some applications strip them.
 *
 * @param path canonical
 * @param at index of the segment, from 0
 * @param takesRest the value includes all following segments
 * @returns AMBIGUOUS if the value depends on whether segment parameters are stripped from the whole path; null if the
 * path has no such segment
 */
export function pathValue(path: string, at: number, takesRest: boolean, ignoresCase: boolean): PairValue {
  const value = valueIn(path, at, takesRest, ignoresCase);
  const stripped = withoutSegmentParameters(path);
  if (stripped === null) return value;
  const other = valueIn(stripped, at, takesRest, ignoresCase);
  return value === null || other === null || value === other ? (value ?? other) : AMBIGUOUS;
}

function valueIn(reading: string, at: number, takesRest: boolean, ignoresCase: boolean): string | null {
  const segments = reading.slice(1).split('/');
  const value = takesRest ? segments.slice(at).map(bareMeaning).join('/') : bareMeaning(segments[at] ?? '');
  return (ignoresCase ? caseless(value) : value) || null;
}

function bareMeaning(segment: string): string {
  return meaningOf(withoutParameters(segment));
}
