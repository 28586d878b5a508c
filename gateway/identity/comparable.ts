/**
 * Maps texts to the same value if databases treat them as the same account: ignores case, accents and invisible
 * characters.
 *
 * By default MySQL compares with the Unicode collation algorithm. It treats ø as o, ① and an Arabic one as 1, and
 * ignores the Arabic tatweel. normalize() does not do that, so a character is first compared with those of ASCII.
 */

/** Normalization can turn one character into 18. */
const LENGTH_MAX = 1024;
/** Later code points are Chinese, invisible or private. */
const POINTS = 0x20000;
const NOT_ASCII = /[^ -~]/gu;
/** Also the dot of the Catalan l·l, which the collation ignores. */
const INVISIBLE = /(?<=l)·|[\p{M}\p{C}]/giu;

export function comparable(value: string): string {
  const beginning = value.replace(NOT_ASCII, twinOf).trim().slice(0, LENGTH_MAX);
  return caseless(beginning.normalize('NFKD').replace(INVISIBLE, '')).trim();
}

/** Removes differences of case. It converts to upper case first, because that maps, for example, the long s to S. */
export function caseless(text: string): string {
  return text.toUpperCase().toLowerCase();
}

/** Texts that a character may be equal to. Invisible characters are equal to the empty one. */
const TEXTS = ['', ...'0123456789abcdefghijklmnopqrstuvwxyz', 'ae', 'dz', 'oe', 'ss', 'th'];

/** For each code point the index of its equal among the texts plus 2. 0: not compared yet. 1: it has none. */
const places = new Uint8Array(POINTS);

/** null until a character needs it, because loading the collation takes some ms. */
let collator: Intl.Collator | null = null;

/** @returns the ASCII text that the collation treats as equal, or the character itself */
function twinOf(char: string): string {
  const point = char.codePointAt(0) ?? 0;
  if (point >= POINTS) return char;
  if (places[point] === 0) {
    // English always has the default order of Unicode, independent of the language of the machine.
    collator ??= new Intl.Collator('en', { sensitivity: 'base' });
    const { compare } = collator;
    places[point] = TEXTS.findIndex((text) => compare(char, text) === 0) + 2;
  }
  return TEXTS[(places[point] ?? 1) - 2] ?? char;
}
