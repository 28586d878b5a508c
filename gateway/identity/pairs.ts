/**
 * One value of a list of pairs: of the cookies of a request, or of its query. One pass, and nothing made for the pairs
 * that are not asked for, however many there are.
 *
 * A value counts as the application reads it, percent-decoded: else each of its spellings would be another client. A name
 * counts in every spelling that some application reads as the same name: PHP reads `api.key` as `api_key`, and ASP.NET
 * reads `API_KEY` as `api_key` in a query. Otherwise a client could present a key that is not counted.
 */

export const AMBIGUOUS = Symbol('ambiguous');

/** null: there is none, or it is blank; AMBIGUOUS: two different ones. */
export type PairValue = string | null | typeof AMBIGUOUS;

const SPACE = 32;
const PERCENT = 37;
const AMPERSAND = 38;
const PLUS = 43;
const DOT = 46;
const SEMICOLON = 59;
const EQUALS = 61;
const BRACKET = 91;
const UNDERSCORE = 95;

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
    if (isCookieNamed(field, begin, equals, name)) {
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
    if (isParameterNamed(target, begin, equals, name)) {
      const value = queryText(target.slice(equals + 1, at));
      if (value !== '' && found !== null && value !== found) return AMBIGUOUS;
      found = value || found;
    }
    begin = at + 1;
    equals = -1;
  }
  return found;
}

/** PHP takes spaces before a name off; blanks behind it are for nobody part of it. */
function isCookieNamed(text: string, begin: number, equals: number, name: string): boolean {
  let at = begin;
  let matched = 0;
  for (; at < equals && matched < name.length; at++, matched++) {
    if (phpName(text.charCodeAt(at)) !== phpName(name.charCodeAt(matched))) return false;
  }
  while (at < equals && text.charCodeAt(at) <= SPACE) at++;
  return at === equals && matched === name.length;
}

/** The same for a query, whose names are percent-encoded, and have no case for ASP.NET. */
function isParameterNamed(text: string, begin: number, equals: number, name: string): boolean {
  let matched = 0;
  let at = begin;
  while (at < equals) {
    let code = text.charCodeAt(at++);
    if (code === PERCENT) {
      const byte = at + 2 <= equals ? byteOf(text.charCodeAt(at), text.charCodeAt(at + 1)) : -1;
      if (byte >= 0) {
        code = byte;
        at += 2;
      }
    } else if (code === PLUS) code = SPACE;
    // PHP takes it off, and does not read `_` for it.
    if (code === SPACE && matched === 0) continue;
    // Where the name ends for PHP.
    if (code === 0) break;
    if (matched < name.length && lowerCase(phpName(code)) === lowerCase(phpName(name.charCodeAt(matched))))
      matched++;
    else if (code > SPACE || (matched > 0 && matched < name.length)) return false;
  }
  return matched === name.length;
}

/** PHP makes variables of names, and reads as `_` what cannot stand in one. */
function phpName(code: number): number {
  return code === DOT || code === SPACE || code === BRACKET ? UNDERSCORE : code;
}

function lowerCase(code: number): number {
  return code >= 65 && code <= 90 ? code + 32 : code;
}

/** @returns -1: they are no two hexadecimal digits */
function byteOf(high: number, low: number): number {
  const [first, second] = [digitOf(high), digitOf(low)];
  return first < 0 || second < 0 ? -1 : first * 16 + second;
}

function digitOf(code: number): number {
  if (code >= 48 && code <= 57) return code - 48;
  const lower = lowerCase(code);
  return lower >= 97 && lower <= 102 ? lower - 87 : -1;
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
