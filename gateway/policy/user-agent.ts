/**
 * Names of programs in the User-Agent field, such as GPTBot. A name is compared with whole words of the field, without
 * regard to case: a search for parts of words would take longer for each listed name.
 */

/** A name as it is written in files. */
export const PROGRAM_NAME = /^(?=.*[A-Za-z])[A-Za-z0-9]+(?:[._-]+[A-Za-z0-9]+)*$/;

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
