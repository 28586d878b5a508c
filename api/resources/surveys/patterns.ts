/**
 * Regular expressions that authors of surveys write. RE2 runs them: its time grows only linearly with the text, and
 * it has no look-around and no back references. Pure but for a cache.
 */
import { RE2JS } from 're2js';
import { PATTERN_LENGTH_MAX, PATTERN_SIZE_MAX } from '#api/values/content-limits.ts';

export interface PatternParams {
  readonly pattern: string;
  /** Flags of JavaScript's RegExp. */
  readonly flags?: string;
}

interface Pattern {
  /** Instructions. A test takes at most this many steps per character. */
  readonly size: number;
  /** Whether the pattern matches anywhere in the text. */
  test(text: string): boolean;
}

/** Flags without effect here: g and y remember a position, d returns groups, and RE2 always does what u and v do. */
const WITHOUT_EFFECT = /[gyduv]/g;
const flagOf: Readonly<Record<string, number>> = {
  i: RE2JS.CASE_INSENSITIVE,
  m: RE2JS.MULTILINE,
  s: RE2JS.DOTALL,
};

const COMPILED_MAX = 500;
/** The pattern that was compiled first is dropped first. null if it cannot be compiled. */
const compiled = new Map<string, Pattern | null>();

/** @returns null if it is not a regular expression that RE2 supports, or is too large */
export function compilePattern({ pattern, flags = '' }: PatternParams): Pattern | null {
  if (pattern.length > PATTERN_LENGTH_MAX || flags.length > 8) return null;
  const key = `${flags}/${pattern}`;
  const known = compiled.get(key);
  if (known !== undefined) return known;
  const made = compile(pattern, flags);
  const oldest = compiled.size >= COMPILED_MAX ? compiled.keys().next().value : undefined;
  if (oldest !== undefined) compiled.delete(oldest);
  compiled.set(key, made);
  return made;
}

function compile(pattern: string, flags: string): Pattern | null {
  let bits = 0;
  for (const flag of flags.replaceAll(WITHOUT_EFFECT, '')) {
    const bit = flagOf[flag];
    if (bit === undefined) return null;
    bits |= bit;
  }
  try {
    const expression = RE2JS.compile(RE2JS.translateRegExp(pattern), bits);
    const size = expression.programSize();
    return size > PATTERN_SIZE_MAX ? null : { size, test: (text) => expression.test(text) };
  } catch {
    // The library has no other way to reject a text.
    return null;
  }
}

/** Explains a null of `compilePattern` to the author of the survey. */
export const PATTERN_REFUSED = `is not a regular expression of at most ${PATTERN_LENGTH_MAX} characters; look-around and back references are not supported`;
