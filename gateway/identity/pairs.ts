/**
 * Finds one value among the cookies or query parameters of a request. One pass, without allocations for other pairs.
 *
 * Values are percent-decoded, so that another spelling is not another client. Names match every spelling that an
 * application may read as the same name: PHP reads `api.key` as `api_key`, and ASP.NET ignores case in query
 * parameters. Otherwise a client could present a key that is not counted.
 */

export const AMBIGUOUS = Symbol('ambiguous');

/** The value of a pair. null if it is absent or blank; AMBIGUOUS for two different values. */
export type PairValue = string | null | typeof AMBIGUOUS;

const TAB = 9;
const CARRIAGE_RETURN = 13;
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
    // charCodeAt returns NaN at the end.
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

export function queryValue(target: string, name: string): PairValue {
  let begin = target.indexOf('?') + 1;
  if (begin === 0) return null;
  let found: string | null = null;
  let equals = -1;
  for (let at = begin; at <= target.length; at++) {
    const code = target.charCodeAt(at);
    if (code === EQUALS && equals < 0) equals = at;
    // Some servers accept a semicolon as separator.
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

/** Whether a cookie has this name. PHP ignores spaces before a cookie name. All servers ignore spaces after it. */
function isCookieNamed(text: string, begin: number, equals: number, name: string): boolean {
  let at = begin;
  let matched = 0;
  for (; at < equals && matched < name.length; at++, matched++) {
    if (phpName(text.charCodeAt(at)) !== phpName(name.charCodeAt(matched))) return false;
  }
  while (at < equals && text.charCodeAt(at) <= SPACE) at++;
  return at === equals && matched === name.length;
}

/** Whether a query parameter has this name. Names are percent-encoded, and ASP.NET ignores their case. */
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
    // PHP drops leading spaces instead of reading them as `_`.
    if (code === SPACE && matched === 0) continue;
    // PHP ends a name at NUL.
    if (code === 0) break;
    if (matched < name.length && lowerCase(phpName(code)) === lowerCase(phpName(name.charCodeAt(matched))))
      matched++;
    else if (code > SPACE || (matched > 0 && matched < name.length)) return false;
  }
  return matched === name.length;
}

/** Replaces a character as PHP does: characters that a variable name cannot have become `_`. */
function phpName(code: number): number {
  return code === DOT || code === SPACE || code === BRACKET ? UNDERSCORE : code;
}

function lowerCase(code: number): number {
  return code >= 65 && code <= 90 ? code + 32 : code;
}

function byteOf(high: number, low: number): number {
  const [first, second] = [digitOf(high), digitOf(low)];
  return first < 0 || second < 0 ? -1 : first * 16 + second;
}

function digitOf(code: number): number {
  if (code >= 48 && code <= 57) return code - 48;
  const lower = lowerCase(code);
  return lower >= 97 && lower <= 102 ? lower - 87 : -1;
}

/** Quotes are removed: some servers drop them and others keep them as part of the value. */
function cookieText(raw: string): string {
  return withoutBlanks(percentDecoded(fieldText(raw).replace(/^"(.*)"$/, '$1')));
}

function queryText(raw: string): string {
  return withoutBlanks(percentDecoded(raw.replaceAll('+', ' ')));
}

/**
 * Removes blanks around the value of a header field. Some applications also remove the byte A0, a blank in Latin-1.
 * Behind another byte above 7F it is the end of a character in UTF-8, such as à.
 */
export function fieldText(value: string): string {
  const bare = value.trim();
  return bare.charCodeAt(bare.length - 1) > 0x7f ? withoutBlanks(value.trimStart()) : bare;
}

/** Removes ASCII blanks around a text in which each code unit stands for one byte. */
function withoutBlanks(text: string): string {
  let from = 0;
  let to = text.length;
  while (isBlank(text.charCodeAt(from))) from++;
  while (to > from && isBlank(text.charCodeAt(to - 1))) to--;
  return text.slice(from, to);
}

function isBlank(code: number): boolean {
  return code === SPACE || (code >= TAB && code <= CARRIAGE_RETURN);
}

/** Decodes byte by byte and leaves malformed escapes as they are. */
export function percentDecoded(text: string): string {
  if (!text.includes('%')) return text;
  return text.replace(/%([0-9A-Fa-f]{2})/g, (_, digits: string) =>
    String.fromCharCode(Number.parseInt(digits, 16)),
  );
}
