/**
 * Names of programs in the User-Agent field, such as GPTBot. A name is compared with whole words of the field, without
 * regard to case: a search for parts of words would take longer for each listed name.
 */

/** Only the beginning of a field is read, so that a long one costs no more than others. */
const LENGTH_MAX = 1024;
const WORD = /[a-z0-9]+(?:[._-]+[a-z0-9]+)*/g;

/** @param rawHeaders alternating names and values */
export function userAgentWords(rawHeaders: readonly string[]): readonly string[] {
  const words: string[] = [];
  let left = LENGTH_MAX;
  for (let i = 0; i < rawHeaders.length && left > 0; i += 2) {
    if (rawHeaders[i]?.length !== 10 || rawHeaders[i]?.toLowerCase() !== 'user-agent') continue;
    const text = (rawHeaders[i + 1] ?? '').slice(0, left);
    left -= text.length;
    for (const [word] of text.toLowerCase().matchAll(WORD)) words.push(word);
  }
  return words;
}

/** Maximum number of words in a name, so that few combinations have to be looked up. */
const NAME_WORDS_MAX = 4;
/** Only names that begin within these words of the field are found, if they have several words. */
const STARTS_MAX = 128;

/**
 * Reads a name of one or several words, such as `Example Agent` or `examplespider/2.0`.
 *
 * @returns its words in lower case with blanks between them; null if it is no name
 */
export function programPhrase(text: string): string | null {
  const words = text.split(/[ \t/]+/);
  const isName = words.every((word) => ONE_WORD.test(word)) && /[A-Za-z]/.test(text);
  return isName && words.length <= NAME_WORDS_MAX ? words.join(' ').toLowerCase() : null;
}

const ONE_WORD = /^[A-Za-z0-9]+(?:[._-]+[A-Za-z0-9]+)*$/;

/**
 * Returns the words of the field, and all names of several words that it may contain.
 *
 * @param wordsMax the number of words in the longest name that is looked for
 */
export function userAgentNames(rawHeaders: readonly string[], wordsMax: number): readonly string[] {
  const words = userAgentWords(rawHeaders);
  const names = [...words];
  for (let length = 2; length <= wordsMax; length++)
    for (let i = 0; i + length <= words.length && i < STARTS_MAX; i++)
      names.push(words.slice(i, i + length).join(' '));
  return names;
}

/** Returns the number of words in the longest of these names; 0 without names. */
export function longestName(names: Iterable<string>): number {
  let longest = 0;
  for (const name of names) longest = Math.max(longest, name.split(' ').length);
  return longest;
}
