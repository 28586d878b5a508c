/** Finds an option that takes one value and is given more than once: nobody can tell which value is meant. */

/**
 * @param options as yargs parsed them: it collects the values of a repeated option in an array
 * @param lists names and aliases of the options and positionals that take several values
 * @returns the sentence for the first repeated option; null if there is none
 */
export function repeatedOption(
  options: Readonly<Record<string, unknown>>,
  lists: readonly string[],
): string | null {
  const name = Object.keys(options).find(
    (key) => key !== '_' && Array.isArray(options[key]) && !lists.includes(key),
  );
  return name === undefined ? null : `--${name} is given twice; give it once`;
}
