import { withoutParameters } from './path-readings.ts';
import { caseless, meaningOf } from './target.ts';

/**
 * Returns the value of a part of the path, without segment parameters, because some applications strip them.
 *
 * @param path a reading
 * @param at index of the segment, from 0
 * @param takesRest the value includes all following segments
 * @returns null if the path has no such segment
 */
export function pathValue(path: string, at: number, takesRest: boolean, ignoresCase: boolean): string | null {
  const segments = path.slice(1).split('/');
  const value = takesRest ? segments.slice(at).map(bareMeaning).join('/') : bareMeaning(segments[at] ?? '');
  return (ignoresCase ? caseless(value) : value) || null;
}

function bareMeaning(segment: string): string {
  return meaningOf(withoutParameters(segment));
}
