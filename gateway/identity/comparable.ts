/**
 * Makes texts equal that databases take for the same account: without regard to case, accents and invisible characters.
 *
 * MySQL compares by the Unicode collation algorithm unless it is told otherwise. There ø is an o, ① and an Arabic one are a
 * 1, and the Arabic tatweel is nothing. normalize() does not know that, so a character is compared with those of ASCII
 * first.
 */

/** A normalized character can be 18 characters. */
const LENGTH_MAX = 1024;
/** Characters behind it are Chinese, invisible or private. */
const POINTS = 0x20000;
const NOT_ASCII = /[^ -~]/gu;
/** Also the dot of the Catalan l·l, which the collation ignores. */
const INVISIBLE = /(?<=l)·|[\p{M}\p{C}]/giu;

export function comparable(value: string): string {
  const beginning = value.replace(NOT_ASCII, twinOf).trim().slice(0, LENGTH_MAX);
  return caseless(beginning.normalize('NFKD').replace(INVISIBLE, '')).trim();
}

/** Upper case first: it maps the long s, for one, to S. */
export function caseless(text: string): string {
  return text.toUpperCase().toLowerCase();
}

interface Twins {
  readonly compare: (a: string, b: string) => number;
  /** Sorted. The empty text is the twin of invisible characters. */
  readonly texts: readonly string[];
  /** By code point, the place in `texts` plus 2. 0: not compared yet. 1: there is no twin. */
  readonly places: Uint8Array;
}

/** null until a character needs them: loading the collation takes some ms. */
let twins: Twins | null = null;

function makeTwins(): Twins {
  // English has the order of the root, whatever the language of the machine is.
  const { compare } = new Intl.Collator('en', { sensitivity: 'base' });
  const pairs = ['ae', 'dz', 'oe', 'ss', 'th'];
  const texts = ['', ...'0123456789abcdefghijklmnopqrstuvwxyz', ...pairs].sort(compare);
  return { compare, texts, places: new Uint8Array(POINTS) };
}

/** @returns the text of ASCII that the collation takes for this character, or the character */
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
