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

interface Twins {
  readonly compare: (a: string, b: string) => number;
  /**
   * ASCII texts in the order of the collation. The empty text comes first, and invisible characters are equal to it.
   */
  readonly texts: readonly string[];
  /** For each code point the index of its equal in `texts` plus 2. 0 means not compared yet, 1 means no equal text. */
  readonly places: Uint8Array;
}

/** Table of equal texts. null until a character needs it, because loading the collation takes some ms. */
let twins: Twins | null = null;

function makeTwins(): Twins {
  // English always has the default order of Unicode, independent of the language of the machine.
  const { compare } = new Intl.Collator('en', { sensitivity: 'base' });
  const pairs = ['ae', 'dz', 'oe', 'ss', 'th'];
  const texts = ['', ...'0123456789abcdefghijklmnopqrstuvwxyz', ...pairs].sort(compare);
  return { compare, texts, places: new Uint8Array(POINTS) };
}

/** @returns the ASCII text that the collation treats as equal, or the character itself */
function twinOf(char: string): string {
  const point = char.codePointAt(0) ?? 0;
  if (point >= POINTS) return char;
  twins ??= makeTwins();
  const { texts, places } = twins;
  const known = places[point] ?? 1;
  const place = known === 0 ? placeOf(char, twins) : known;
  places[point] = place;
  return texts[place - 2] ?? char;
}

function placeOf(char: string, { compare, texts }: Twins): number {
  let from = 0;
  let to = texts.length;
  while (from < to) {
    const middle = Math.floor((from + to) / 2);
    const order = compare(char, texts[middle] ?? '');
    if (order === 0) return middle + 2;
    if (order < 0) to = middle;
    else from = middle + 1;
  }
  return 1;
}
