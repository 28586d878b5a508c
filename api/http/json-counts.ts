/**
 * How many different names the members of a JSON text have, and how many values, found without parsing it. It is names
 * that make parsing slow: V8 keeps each for itself, and a new shape for each object that has others. It is values that
 * fill the heap, and what a request leaves there the garbage collector has to look at.
 */
const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COLON = 0x3a;
const COMMA = 0x2c;
/** Space, tab, line feed, carriage return. */
const BLANK: ReadonlySet<number | undefined> = new Set([0x20, 0x09, 0x0a, 0x0d]);

interface JsonCounts {
  readonly names: number;
  readonly values: number;
}

/**
 * @param text UTF-8 that may be JSON; whether it is, is for the parser to say
 * @returns what there is more of than this; null: nothing. A name that is escaped differs from one that is not, and of the
 *   values those without another before them in their list or object are not counted
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

/** @returns where the closing quote is, or the text ends */
function endOfString(text: Buffer, opening: number): number {
  let at = opening + 1;
  while (at < text.length && text[at] !== QUOTE) at += text[at] === BACKSLASH ? 2 : 1;
  return at;
}
