/**
 * Counts the different names and the values of a JSON text without parsing it. Names make parsing slow, because V8
 * stores each, and a new shape for each object with other names. Values fill the heap that the garbage collector must
 * visit.
 */
const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COLON = 0x3a;
const COMMA = 0x2c;
/** Codes of space, tab, line feed, carriage return. */
const BLANK: ReadonlySet<number | undefined> = new Set([0x20, 0x09, 0x0a, 0x0d]);

interface JsonCounts {
  readonly names: number;
  readonly values: number;
}

/**
 * @param text UTF-8 that may be JSON; the parser checks it
 * @returns the count that exceeds the maximum; null if none does. An escaped name counts separately from the same name
 * unescaped, and the first value of each list or object is not counted
 */
export function excessOf(text: Buffer, max: JsonCounts): keyof JsonCounts | null {
  const names = new Set<string>();
  let values = 0;
  for (let at = 0; at < text.length; at += 1) {
    const byte = text[at];
    if (byte === COMMA) {
      values += 1;
      if (values > max.values) return 'values';
    } else if (byte === QUOTE) {
      const end = endOfString(text, at);
      let next = end + 1;
      while (BLANK.has(text[next])) next += 1;
      if (text[next] === COLON) names.add(text.toString('latin1', at, end));
      if (names.size > max.names) return 'names';
      at = next - 1;
    }
  }
  return null;
}

/** @returns the position of the closing quote, or the end of the text */
function endOfString(text: Buffer, opening: number): number {
  let at = opening + 1;
  while (at < text.length && text[at] !== QUOTE) at += text[at] === BACKSLASH ? 2 : 1;
  return at;
}
