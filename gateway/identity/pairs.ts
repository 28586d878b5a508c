/**
 * One value of a list of pairs: of the cookies of a request, or of its query. One pass, and nothing made for the pairs
 * that are not asked for, however many there are.
 *
 * A value counts as the application reads it, percent-decoded: else each of its spellings would be another client.
 */

export const AMBIGUOUS = Symbol('ambiguous');

/** null: there is none, or it is blank; AMBIGUOUS: two different ones. */
export type PairValue = string | null | typeof AMBIGUOUS;

const SPACE = 32;
const AMPERSAND = 38;
const SEMICOLON = 59;
const EQUALS = 61;

/** @param field the value of a Cookie field (RFC 6265 4.2.1) */
export function cookieValue(field: string, name: string): PairValue {
  let found: string | null = null;
  let equals = -1;
  let begin = 0;
  for (let at = 0; at <= field.length; at++) {
    // NaN behind the end.
    const code = field.charCodeAt(at);
    if (code === EQUALS && equals < 0) equals = at;
    if (code !== SEMICOLON && at < field.length) continue;
    while (field.charCodeAt(begin) <= SPACE) begin++;
    if (isNamed(field, begin, equals, name)) {
      const value = cookieText(field.slice(equals + 1, at));
      if (value !== '' && found !== null && value !== found) return AMBIGUOUS;
      found = value || found;
    }
    begin = at + 1;
    equals = -1;
  }
  return found;
}

/** @param target of the request: what stands behind its first `?` is looked at */
export function queryValue(target: string, name: string): PairValue {
  let begin = target.indexOf('?') + 1;
  if (begin === 0) return null;
  let found: string | null = null;
  let equals = -1;
  for (let at = begin; at <= target.length; at++) {
    const code = target.charCodeAt(at);
    if (code === EQUALS && equals < 0) equals = at;
    // Some servers take a semicolon as well.
    if (code !== AMPERSAND && code !== SEMICOLON && at < target.length) continue;
    if (isNamed(target, begin, equals, name) || isSpelled(target, begin, equals, name)) {
      const value = queryText(target.slice(equals + 1, at));
      if (value !== '' && found !== null && value !== found) return AMBIGUOUS;
      found = value || found;
    }
    begin = at + 1;
    equals = -1;
  }
  return found;
}

function isNamed(text: string, begin: number, equals: number, name: string): boolean {
  if (equals < 0) return false;
  let end = equals;
  while (end > begin && text.charCodeAt(end - 1) <= SPACE) end--;
  return end - begin === name.length && text.startsWith(name, begin);
}

/** An encoded spelling of the name: at least one character of it takes three. */
function isSpelled(text: string, begin: number, equals: number, name: string): boolean {
  const length = equals - begin;
  if (length < name.length + 2 || length > name.length * 3) return false;
  return queryText(text.slice(begin, equals)) === name;
}

/** Quotes around a cookie's value are read by some as part of it, and dropped by others. */
function cookieText(raw: string): string {
  return percentDecoded(raw.trim().replace(/^"(.*)"$/, '$1')).trim();
}

function queryText(raw: string): string {
  return percentDecoded(raw.replaceAll('+', ' ')).trim();
}

/** Byte by byte; what is no encoding stays as it is. */
function percentDecoded(text: string): string {
  if (!text.includes('%')) return text;
  return text.replace(/%([0-9A-Fa-f]{2})/g, (_, digits: string) =>
    String.fromCharCode(Number.parseInt(digits, 16)),
  );
}
