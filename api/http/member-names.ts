/**
 * How many different names the members of a JSON text have, found without parsing it. It is names that make parsing slow:
 * V8 keeps each for itself, and a new shape for each object that has others.
 */
const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COLON = 0x3a;
/** Space, tab, line feed, carriage return. */
const BLANK: ReadonlySet<number | undefined> = new Set([0x20, 0x09, 0x0a, 0x0d]);

/**
 * @param text UTF-8 that may be JSON; whether it is, is for the parser to say
 * @returns whether there are more different names than this; one that is escaped differs from one that is not
 */
export function hasMoreNamesThan(text: Buffer, namesMax: number): boolean {
  const names = new Set<string>();
  for (let at = text.indexOf(QUOTE); at !== -1; ) {
    const end = endOfString(text, at);
    let next = end + 1;
    while (BLANK.has(text[next])) next += 1;
    if (text[next] === COLON) names.add(text.toString('latin1', at, end));
    if (names.size > namesMax) return true;
    at = text.indexOf(QUOTE, next);
  }
  return false;
}

/** @returns where the closing quote is, or the text ends */
function endOfString(text: Buffer, opening: number): number {
  let at = opening + 1;
  while (at < text.length && text[at] !== QUOTE) at += text[at] === BACKSLASH ? 2 : 1;
  return at;
}
