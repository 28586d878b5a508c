/** Reads fields of JSON logs. */

export type Fields = Readonly<Record<string, unknown>>;

/** Parses a line's document, and skips text of a collector before it. @returns null if there is none */
export function documentIn(line: string): Fields | null {
  const begin = line.indexOf('{');
  if (begin < 0) return null;
  try {
    return objectIn(JSON.parse(line.slice(begin)));
  } catch {
    return null;
  }
}

export function objectIn(value: unknown): Fields | null {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Fields) : null;
}

/** Reads a number that is not negative, also from a text; null if there is none. */
export function numberIn(value: unknown): number | null {
  const number = typeof value === 'string' ? Number(value) : value;
  return typeof number === 'number' && number >= 0 && Number.isFinite(number) ? number : null;
}
