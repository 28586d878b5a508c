/** Looks up a field in a header section. */

/**
 * @param headers alternating names and values
 * @param name in lower case
 * @returns the values of all its fields
 */
export function valuesOf(headers: readonly string[], name: string): string[] {
  const values: string[] = [];
  for (let i = 0; i < headers.length; i += 2) {
    const field = headers[i] ?? '';
    if (field.length === name.length && field.toLowerCase() === name) values.push(headers[i + 1] ?? '');
  }
  return values;
}
