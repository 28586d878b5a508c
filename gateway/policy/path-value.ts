/** The value of a path parameter, as an application reads it that strips segment parameters. */

import { AMBIGUOUS, type PairValue } from '#gateway/identity/pairs.ts';
import { caseless, meaningOf, withoutParameters, withoutSegmentParameters } from './target.ts';

/**
 * @param path canonical
 * @param at the parameter's segment, from 0
 * @param takesRest what follows is part of it
 * @param ignoresCase values that differ only in case are one
 * @returns AMBIGUOUS where the readings of the path differ in it; null where it has no such segment
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
