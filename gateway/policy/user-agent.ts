/**
 * Names of programs in the User-Agent field, such as GPTBot. A name is compared with whole words of the field, without
 * regard to case: a search for parts of words would take longer for each listed name.
 */

/** A name as it is written in files. */
export const PROGRAM_NAME = /^(?=.*[A-Za-z])[A-Za-z0-9]+(?:[._-]+[A-Za-z0-9]+)*$/;

const WORD = /[a-z0-9]+(?:[._-]+[a-z0-9]+)*/g;

/** @param rawHeaders alternating names and values */
export function userAgentWords(rawHeaders: readonly string[]): readonly string[] {
  const words: string[] = [];
  for (let i = 0; i < rawHeaders.length; i += 2) {
    if (rawHeaders[i]?.length !== 10 || rawHeaders[i]?.toLowerCase() !== 'user-agent') continue;
    for (const [word] of (rawHeaders[i + 1] ?? '').toLowerCase().matchAll(WORD)) words.push(word);
  }
  return words;
}
